"""Who may use the doors: clients on this machine, or holders of a token."""

import hmac
import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request

TOKEN, TOKEN_FILE, LOOPBACK = "FLASHVECTOR_VLLM_TOKEN", "FLASHVECTOR_VLLM_TOKEN_FILE", "FLASHVECTOR_VLLM_LOOPBACK"
"""Environment: the token, or a file that holds it; LOOPBACK=0 asks local clients for the token as well."""
SHORTEST_TOKEN = 16
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via", "origin")
"""Headers of a proxy or of a web page: such a request is not a local client's own."""


class Access:
    """Decides about one request.

    Args:
        token: None when there is none: then only local clients may.
        loopback: whether local clients may without it.
    """

    def __init__(self, token: str | None, loopback: bool = True) -> None:
        if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii()):
            raise ValueError(
                f"{TOKEN}: expected at least {SHORTEST_TOKEN} ASCII characters, found {len(token)} characters"
            )
        self._token, self._loopback = token, loopback

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Access":
        """Read the token.

        Raises:
            ValueError: the token is too short.
            OSError: the token file can't be read.
        """
        token = environment.get(TOKEN)
        if token is None and (path := environment.get(TOKEN_FILE)):
            token = Path(path).read_text().strip()
        return cls(token, environment.get(LOOPBACK, "1") != "0")

    def refusal(self, request: Request) -> str | None:
        """Why a request may not; None when it may."""
        if self._token is not None and self._bears_token(request):
            return None
        if self._loopback and _local(request):
            return None
        local = "a direct request from this machine or " if self._loopback else ""
        unset = "" if self._token else f"; no token is set ({TOKEN} or {TOKEN_FILE})"
        return f"expected {local}the right bearer token, found none{unset}"

    def _bears_token(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        expected = (self._token or "").encode()
        same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), expected)
        return scheme.lower() == "bearer" and same


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
