# Every target does its own set-up on a machine that has Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
ENGINE := .venv-vllm
SETUP := deploy/setup
ALL_CORES := -n auto --dist worksteal

.PHONY: setup stack programs models postgres demo test test-fast test-plugin check lock bench clean

setup: .venv/ready  ## virtual environment with the locked dependencies

.venv/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -c 'from stack.simulator.engine.kernels import kernels; kernels(None)'
	@touch $@

stack: setup programs $(ENGINE)/plugin models  ## all that the local stack needs: HAProxy, Prometheus, vLLM, two small models

programs: setup
	@$(SETUP)/programs.sh

$(ENGINE)/ready: $(SETUP)/vllm-cpu.lock $(SETUP)/vllm-gpu.lock $(SETUP)/engine.sh $(SETUP)/repair_engine.py
	@PYTHON=$(PYTHON) $(SETUP)/engine.sh
	@touch $@

$(ENGINE)/plugin: $(ENGINE)/ready stack/vllm_plugin/pyproject.toml
	@$(ENGINE)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable stack/vllm_plugin
	@echo "engine: our scheduler is installed from stack/vllm_plugin"
	@touch $@

models: $(ENGINE)/ready
	@$(SETUP)/models.sh

postgres:
	@$(SETUP)/postgres.sh

demo: setup  ## the loop on the simulated stack, live in the terminal
	$(BIN)/flashvector demo

check: setup  ## style, types and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Real engines share the machine with whatever else runs on it: what was disturbed gets a second try, which must succeed.
test: check stack postgres  ## everything
	$(BIN)/pytest -m "not real_stack" $(ALL_CORES)
	$(BIN)/pytest -m real_stack || $(BIN)/pytest -m real_stack --last-failed
	$(MAKE) --no-print-directory test-plugin

test-plugin: $(ENGINE)/plugin  ## the plugin's own tests, by the engine's interpreter
	cd stack/vllm_plugin && OMP_NUM_THREADS=1 ../../$(ENGINE)/bin/python -m pytest

test-fast: setup  ## tests that need no outside program
	$(BIN)/pytest -m "not real_stack and not postgres" $(ALL_CORES)

bench: setup  ## speed of the simulator, and how its cost grows
	$(BIN)/flashvector simulate bench
	$(BIN)/python benchmarks/simulator_scaling.py

lock: setup  ## resolve the dependencies anew, ours and the engine's
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	    --extra dev pyproject.toml --output-file requirements.lock
	UV=$(CURDIR)/$(BIN)/uv $(SETUP)/lock.sh

clean:
	rm -rf .venv $(ENGINE) build *.egg-info
