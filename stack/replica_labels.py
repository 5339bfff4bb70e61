"""Which replica a vLLM series belongs to: its instance, model and engine labels, and the name made of them."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from stack.outside_text import name_of

Labels: TypeAlias = tuple[str, str, str]
"""(instance or pod, model, engine); an empty part means that the series does not carry that label."""


def identity_of(labels: Mapping[str, str]) -> Labels:
    """The labels that tell replicas apart; a pod's name is preferred to an instance's address."""
    return (labels.get("pod") or labels.get("instance", ""), labels.get("model_name", ""), labels.get("engine", ""))


def matches(partial: Labels, full: Labels) -> bool:
    """Whether a series with `partial` labels can be of the replica with `full` ones."""
    return all(not part or part == whole for part, whole in zip(partial, full, strict=True))


def replica_name(labels: Labels, all_labels: Iterable[Labels], given: str | None) -> str:
    """The name of the replica with these labels: its instance, else `given`, else its model, with the engine's index.

    Model and engine are part of a named instance's replicas only where the instance has several. Whoever configures or
    asks an engine chooses these labels, so what has no name's form is replaced, see `stack.outside_text.name_of`.
    """
    instance, model, engine = labels
    others = [other for other in all_labels if other[0] == instance]
    base = instance or given
    if base:
        parts = [base]
        if len({other[1] for other in others}) > 1:
            parts.append(model)
        if len({other[2] for other in others}) > 1:
            parts.append(engine)
        return "/".join(map(name_of, parts))
    return "/".join(name_of(part) for part in (model, engine) if part) or "engine"
