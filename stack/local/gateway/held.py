"""Reading what the gateway holds, by a way that cannot change anything.

Even a runtime socket of level `user` may change maps, and with them settings. So readers ask the metrics address, where
HAProxy's Lua passes on the answers to fixed commands.
"""

import httpx

from stack.errors import UnreachableError
from stack.local.configuration import LocalStack
from stack.local.gateway import layout
from stack.local.gateway.state import COMMANDS, GatewayState, state_from

TIMEOUT_S = 10.0
_COUNTS = "counts"


def held(configuration: LocalStack) -> GatewayState:
    """What is in force now.

    Raises:
        UnreachableError: nothing answered, or not a gateway of ours; the text names the address.
    """
    address, found = _sections(configuration)
    missing = [command for command in COMMANDS if command not in found]
    if missing:
        raise UnreachableError(f"{address}: expected the gateway's answer to {missing[0]!r}, found none")
    return state_from(found, configuration)


def counts(configuration: LocalStack) -> dict[str, float]:
    """What the gateway's Lua counts: `under_care` (admitted and not yet ended), `in_flight.R`, `outstanding_tokens.R`.

    With them `completions_per_s`, once requests have queued for long enough to know it.

    Raises:
        UnreachableError: as for `held`.
    """
    lines = _sections(configuration)[1].get(_COUNTS, "").splitlines()
    return {name: float(value) for name, _, value in (line.partition(" ") for line in lines if line)}


def _sections(configuration: LocalStack) -> tuple[str, dict[str, str]]:
    address = configuration.gateway.metrics_url + layout.HELD_PATH
    try:
        answer = httpx.get(address, timeout=TIMEOUT_S, trust_env=False, verify=False)  # plain http: no certificates
    except httpx.HTTPError as error:
        raise UnreachableError(f"{address}: no answer: {error or type(error).__name__}") from error
    if answer.status_code != httpx.codes.OK:
        raise UnreachableError(f"{address}: answered {answer.status_code}; expected 200 and what the gateway holds")
    found = {}
    for part in f"\n{answer.text}".split("\n== ")[1:]:
        name, _, text = part.partition("\n")
        found[name] = text.strip("\n")
    return address, found
