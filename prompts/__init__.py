"""Text the model sees: one Markdown file per use, with {placeholders}."""

import hashlib
from importlib.resources import files
from string import Formatter

DIGEST_LENGTH = 12


def text(name: str) -> str:
    """The text of prompt `name` as it is stored, placeholders included."""
    return files("prompts").joinpath(f"{name}.md").read_text(encoding="utf-8")


def placeholders(name: str) -> frozenset[str]:
    """Names that `render` must be given for prompt `name`."""
    return frozenset(field for _, field, _, _ in Formatter().parse(text(name)) if field is not None)


def render(name: str, **values: str) -> str:
    """Prompt `name` with every placeholder filled in.

    Raises:
        ValueError: a placeholder has no value, or a value has no placeholder.
    """
    wanted, given = placeholders(name), frozenset(values)
    if wanted != given:
        raise ValueError(f"prompts/{name}.md: expected {sorted(wanted)}, found {sorted(given)}")
    return text(name).format(**values).strip()


def digest(name: str) -> str:
    """First characters of the SHA-256 of the stored text: what an episode or a report names as its prompt's version."""
    return hashlib.sha256(text(name).encode()).hexdigest()[:DIGEST_LENGTH]
