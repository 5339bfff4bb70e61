#!/usr/bin/env bash
# Prints gpu where an NVIDIA driver answers with at least one GPU, else cpu. FLASHVECTOR_ENGINE=cpu or gpu decides otherwise.
set -euo pipefail
if [ -n "${FLASHVECTOR_ENGINE:-}" ]; then
    echo "$FLASHVECTOR_ENGINE"
elif nvidia-smi --list-gpus 2>/dev/null | grep -q '^GPU'; then
    echo gpu
else
    echo cpu
fi
