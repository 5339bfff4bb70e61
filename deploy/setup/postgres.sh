#!/usr/bin/env bash
# PostgreSQL's programs, for tests that start a server of their own: from Debian's package as root. Does nothing when they are there.
set -euo pipefail

has() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null; }

from_debian() {
    # Debian makes and starts a database cluster of its own where nothing says otherwise; nobody asked for that.
    local quiet=/etc/postgresql-common/createcluster.d/flashvector.conf
    mkdir -p "$(dirname "$quiet")"
    echo "create_main_cluster = false" >"$quiet"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update >/dev/null
    apt-get -q install -y --no-install-recommends postgresql >/dev/null
    rm "$quiet"
}

if ! has && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    from_debian
fi
has || { echo "postgres: no initdb; install PostgreSQL with your system's packages, or run make test-fast" >&2; exit 1; }
echo "postgres: $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1 || command -v initdb)"
