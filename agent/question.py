"""What a question asks, found by its words; for conversations without a language model."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from stack.catalogue import SETTINGS
from stack.setting import Scope, Setting, Value
from stack.snapshot import FLEET


@dataclass(frozen=True)
class AboutProblems:
    """Why is it slow, what is the bottleneck, is it healthy?"""


@dataclass(frozen=True)
class AboutChanges:
    """What was changed, kept, undone, what waits for an approval?"""


@dataclass(frozen=True)
class AboutMissing:
    """What can't be seen?"""


@dataclass(frozen=True)
class AboutSetting:
    """What is this setting, and what is it now?"""

    setting: Setting


@dataclass(frozen=True)
class WhatIf:
    """What would this value do (`wanted` False), or: make it so (`wanted` True)?"""

    setting: Setting
    target: str
    value: Value
    wanted: bool


@dataclass(frozen=True)
class Unclear:
    """None of these.

    Attributes:
        why: what was not clear about a wish that was recognised; empty when nothing was recognised.
    """

    why: str = ""


Question: TypeAlias = AboutProblems | AboutChanges | AboutMissing | AboutSetting | WhatIf | Unclear

_ASKS = re.compile(r"\b(what|if|would|happen\w*|forecast|predict\w*|effect|could|should|how)\b")
_WANTS = re.compile(r"\b(set|change|raise|lower|increase|reduce|decrease|make|put|drain|limit|switch)\b")
_CHANGES = re.compile(
    r"\b(did you|have you|chang\w*|history|journal|episodes?|undo\w*|undone|rolled?|kept|pending|approv\w*)\b"
)
_MISSING = re.compile(r"\b(missing|blind|unknown|signals?|not see|cannot see|can't see)\b")
_PROBLEMS = re.compile(
    r"\b(why|wrong|bottleneck|slow\w*|p\d\d|latency|ttft|itl|tpot|queue\w*|problem\w*|health\w*|diagnos\w*|happening|"
    r"state|status|ok|throughput|cache|kv|preempt\w*|high)\b"
)
_TARGET_LIKE = re.compile(r"(?:\bon|\bof|\bfor)\s+(?!the\b|fleet\b|all\b|every\b)([a-z][\w.:/]*(?:[ _]\d+)?)")
ENGINE_NAMES = {
    "max_num_seqs": "running_request_cap",
    "max_num_batched_tokens": "tokens_per_step",
    "long_prefill_token_threshold": "long_prefill_threshold_tokens",
    "maxconn": "replica_concurrency_cap",
}
"""What vLLM and HAProxy call settings, and our names for them."""
TOLD = " * "
"""Stands where a word was that has been understood."""
_NEGATED = re.compile(r"\b(do not|don't|dont|never|not)\b")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)")


def understand(text: str, replicas: Iterable[str]) -> Question:
    """The meaning of `text`; `replicas` are the names that may be targets."""
    words = " ".join(re.sub(r"[_\-]+", "_", text.lower()).split())
    for theirs, ours in ENGINE_NAMES.items():
        words = re.sub(rf"\b_?{theirs}\b", ours, words)
    setting, rest = _setting(words)
    if setting is not None:
        return _about_setting(setting, rest, words, tuple(replicas))
    for pattern, question in ((_CHANGES, AboutChanges()), (_MISSING, AboutMissing()), (_PROBLEMS, AboutProblems())):
        if pattern.search(words):
            return question
    return Unclear()


def _about_setting(setting: Setting, rest: str, words: str, replicas: tuple[str, ...]) -> Question:
    target, rest = _target(rest, replicas)
    values = _values(setting, rest)
    if not values:
        return AboutSetting(setting)
    if _target(rest, replicas)[0] != FLEET:
        return Unclear("several targets are named: say one value for one target")
    unknown = _TARGET_LIKE.search(rest)
    if unknown is not None and setting.scope is Scope.REPLICA:
        return Unclear(f"{unknown[1]!r} is no target; there are {', '.join(replicas)} or the fleet")
    if len(values) > 1:
        return Unclear(f"several values are named ({', '.join(map(str, values))}): say one value for one target")
    if _NEGATED.search(words):
        return Unclear("nothing is done about a change that is not wanted")
    value = values[0]
    wanted = bool(_WANTS.search(words)) and not _ASKS.search(words)
    return WhatIf(setting, FLEET if setting.scope is Scope.POOL else target, value, wanted)


def _setting(words: str) -> tuple[Setting | None, str]:
    """The setting named in `words` with spaces or underscores, and the words without it; longest name first."""
    for setting in sorted(SETTINGS, key=lambda item: -len(item.name)):
        pattern = rf"\b{setting.name.replace('_', '[ _]')}\b"
        if re.search(pattern, words):
            return setting, re.sub(pattern, " ", words)
    return None, words


def _target(words: str, replicas: tuple[str, ...]) -> tuple[str, str]:
    for replica in sorted(replicas, key=len, reverse=True):
        name = re.escape(re.sub(r"[_\-]+", "_", replica.lower()))
        if re.search(rf"(?<!\w){name}(?!\w)", words):
            return replica, re.sub(rf"(?<!\w){name}(?!\w)", TOLD, words)
    return FLEET, words


def _values(setting: Setting, words: str) -> list[Value]:
    """Every value named, in order."""
    if setting.choices:
        longest_first = sorted(setting.choices, key=len, reverse=True)
        named = (c for c in longest_first if re.search(rf"\b{c.replace('_', '[ _]')}\b", words))
        return list(islice(named, 1))
    return [float(number) for number in _NUMBER.findall(words)]
