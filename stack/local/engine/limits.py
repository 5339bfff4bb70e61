"""Settings of an engine as limits of the plugin, and back. Pure: state in, numbers out."""

from collections.abc import Mapping
from typing import Any

from stack.errors import UnreachableError
from stack.setting import Value

LIMIT_OF: Mapping[str, str] = {
    "running_request_cap": "running_request_cap",
    "tokens_per_step": "tokens_per_step",
    "long_prefill_threshold_tokens": "long_prefill_threshold_tokens",
    "usable_kv_blocks_ratio": "usable_kv_blocks",
}
"""What the plugin calls each setting."""
RATIO = "usable_kv_blocks_ratio"
DIGITS_MAX = 9
"""More than any block count needs to tell its shares apart."""


def held_value(setting: str, state: Mapping[str, Any]) -> Value:
    """The setting's value in a state of the plugin.

    Raises:
        UnreachableError: the state does not hold it, so the engine told something else than its limits.
    """
    limit = _number(state, "limits", setting)
    return share(limit, blocks(state)) if setting == RATIO else float(limit)


def limit_value(setting: str, value: float, state: Mapping[str, Any]) -> int:
    """The limit that a setting's value stands for."""
    return round(value * blocks(state)) if setting == RATIO else int(value)


def span(setting: str, state: Mapping[str, Any]) -> tuple[float, float]:
    """Lowest and highest value this engine takes, in the setting's unit."""
    try:
        low, high = state["bounds"][LIMIT_OF[setting]]
    except (KeyError, TypeError, ValueError) as error:
        raise UnreachableError(f"the engine did not tell the bounds of {setting}") from error
    return (low / blocks(state), high / blocks(state)) if setting == RATIO else (float(low), float(high))


def blocks(state: Mapping[str, Any]) -> int:
    """KV blocks of the engine, all of them."""
    try:
        return int(state["bounds"][LIMIT_OF[RATIO]][1])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UnreachableError("the engine did not tell how many KV blocks it has") from error


def share(part: int, whole: int) -> float:
    """The shortest decimal that stands for `part` of `whole` blocks: what was written as 0.5 is read as 0.5."""
    for digits in range(1, DIGITS_MAX):
        rounded = round(part / whole, digits)
        if round(rounded * whole) == part:
            return rounded
    return part / whole


def _number(state: Mapping[str, Any], table: str, setting: str) -> int:
    try:
        return int(state[table][LIMIT_OF[setting]])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreachableError(f"the engine did not tell its {setting}") from error
