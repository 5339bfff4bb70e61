# Every target does its own set-up on a machine that has Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-fast check lock bench clean

setup: .venv/ready  ## virtual environment with the locked dependencies

.venv/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -c 'from stack.simulator.engine.kernels import kernels; kernels(None)'
	@touch $@

demo: setup  ## the loop on the simulated stack, live in the terminal
	$(BIN)/flashvector demo

check: setup  ## style, types and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check  ## everything
	$(BIN)/pytest

test-fast: setup  ## tests that need no outside server
	$(BIN)/pytest

bench: setup  ## speed of the simulator, and how its cost grows
	$(BIN)/flashvector simulate bench
	$(BIN)/python benchmarks/simulator_scaling.py

lock: setup  ## resolve the dependencies anew
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	    --extra dev pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv build *.egg-info
