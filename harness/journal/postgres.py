"""The store in PostgreSQL, for sessions of several machines: the same tables, the same guarantees.

SQLite's one write lock is an advisory lock here, taken as a transaction begins: in READ COMMITTED every statement after
that sees what all transactions before it have committed, so nothing that was read can be overtaken.
"""

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from harness.errors import StoreError
from stack.redaction import SECRET_NAME, keep_secret, redacted

DRIVER = "postgresql+psycopg"
WRITE_LOCK = 0x666C6173685F76
"""Number of the advisory lock, any will do: `flash_v` in ASCII."""
IDLE_S = 15.0
"""A process that stops in the middle of a transaction loses its connection, and with it the lock, after this long."""


def postgres_url(text: str) -> URL:
    """The address of a database; its password is written down nowhere from here on.

    Raises:
        StoreError: it is none, or the driver is not installed; the password in it is not repeated.
    """
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise StoreError(f"store_url: expected {DRIVER}://USER@HOST/DATABASE, found something else") from error
    if url.drivername != DRIVER:
        raise StoreError(f"store_url: expected {DRIVER}://USER@HOST/DATABASE, found {url.drivername}")
    named = [value for name, values in url.normalized_query.items() if SECRET_NAME.search(name) for value in values]
    for password in (url.password or "", *named):
        keep_secret(password)
    return url


def postgres_name(url: URL) -> str:
    """The address in messages: without who uses it."""
    place = URL.create(url.drivername, host=url.host, port=url.port, database=url.database, query=url.query)
    return redacted(place.render_as_string())


def postgres_engine(url: URL, busy_timeout_s: float, *, read_only: bool = False) -> Engine:
    """Connections to the database at `url`, checked for life before they are used.

    Raises:
        StoreError: the driver is not installed.
    """
    limits = {"lock_timeout": busy_timeout_s, "idle_in_transaction_session_timeout": IDLE_S}
    options = " ".join(f"-c {name}={int(seconds * 1000)}" for name, seconds in limits.items())
    more = {"isolation_level": "REPEATABLE READ", "execution_options": {"postgresql_readonly": True}}
    arguments = {"options": options, "connect_timeout": max(2, int(busy_timeout_s))}
    try:
        engine = create_engine(url, connect_args=arguments, pool_pre_ping=True, **(more if read_only else {}))
    except ModuleNotFoundError as error:
        raise StoreError("store_url: the driver is missing; install flashvector with its extra `postgres`") from error

    def lock(connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")

    if not read_only:
        event.listen(engine, "begin", lock)
    return engine


def postgres_cause(error: DBAPIError) -> str:
    """What is wrong, in words."""
    text = str(error.orig).splitlines()[0]
    hints = {
        "lock timeout": "busy: another process holds the database",
        "read-only": "read-only, the journal must be able to write",
        "connection": "the server does not answer",
    }
    return next((f"{hint} ({text})" for word, hint in hints.items() if word in text), text)
