"""Who may use the doors: clients on this machine, or holders of a token: one for all of them, one for reading only."""

import hmac
import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request

TOKEN, TOKEN_FILE, LOOPBACK = "FLASHVECTOR_VLLM_TOKEN", "FLASHVECTOR_VLLM_TOKEN_FILE", "FLASHVECTOR_VLLM_LOOPBACK"
"""Environment: the token, or a file that holds it; LOOPBACK=0 asks local clients for the token as well."""
READ_TOKEN, READ_TOKEN_FILE = "FLASHVECTOR_VLLM_READ_TOKEN", "FLASHVECTOR_VLLM_READ_TOKEN_FILE"
"""Environment: a second token, which opens the routes that read and no other."""
SHORTEST_TOKEN = 16
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via", "origin")
"""Headers of a proxy or of a web page: such a request is not a local client's own."""


class Access:
    """Decides about one request.

    Args:
        token: None when there is none: then only local clients may, and may write.
        loopback: whether local clients may without it.
        read_token: opens what only reads; None when there is none.
    """

    def __init__(self, token: str | None, loopback: bool = True, read_token: str | None = None) -> None:
        for name, one in ((TOKEN, token), (READ_TOKEN, read_token)):
            if one is not None and (len(one) < SHORTEST_TOKEN or not one.isascii()):
                raise ValueError(
                    f"{name}: expected at least {SHORTEST_TOKEN} ASCII characters, found {len(one)} characters"
                )
        if token is not None and token == read_token:
            raise ValueError(
                f"{READ_TOKEN}: expected another token than {TOKEN}, which opens everything, found the same"
            )
        self._token, self._loopback, self._read_token = token, loopback, read_token

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Access":
        """Read the tokens.

        Raises:
            ValueError: a token is too short, or both are the same.
            OSError: a token file can't be read.
        """
        token, read_token = _token(environment, TOKEN, TOKEN_FILE), _token(environment, READ_TOKEN, READ_TOKEN_FILE)
        return cls(token, environment.get(LOOPBACK, "1") != "0", read_token)

    def refusal(self, request: Request) -> str | None:
        """Why a request may not; None when it may."""
        reads = request.method == "GET"
        for_reading = _bears(request, self._read_token)
        if _bears(request, self._token) or (reads and for_reading) or (self._loopback and _local(request)):
            return None
        local = "a direct request from this machine or " if self._loopback else ""
        unset = "" if self._token or (reads and self._read_token) else f"; no token is set ({TOKEN} or {TOKEN_FILE})"
        return (
            f"expected {local}the right bearer token, found {'the one for reading' if for_reading else 'none'}{unset}"
        )


def _token(environment: Mapping[str, str], variable: str, file_variable: str) -> str | None:
    token = environment.get(variable)
    if token is None and (path := environment.get(file_variable)):
        return Path(path).read_text().strip()
    return token


def _bears(request: Request, token: str | None) -> bool:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), (token or "").encode())
    return token is not None and scheme.lower() == "bearer" and same


def _local(request: Request) -> bool:
    """Whether the peer is on this machine, speaks for itself, and meant this machine (no DNS rebinding)."""
    if request.client is None or any(name in request.headers for name in FORWARDED):
        return False
    return _is_loopback(request.client.host) and _is_loopback(request.url.hostname or "")


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
