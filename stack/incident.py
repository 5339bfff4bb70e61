"""A recorded case: what happened, what was asked, and the truth, which only scorers read."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from stack.catalogue import setting_named
from stack.document import INCIDENT_FILE, document, toml_of
from stack.errors import InputError, UnknownSettingError
from stack.layer import Layer
from stack.problem import first_problem


def _known_setting(name: str) -> str:
    try:
        return setting_named(name).name
    except UnknownSettingError as error:
        raise ValueError(str(error)) from error


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ActionPattern(_Part):
    """A kind of action: a setting and which way it goes, on one replica or on any.

    Attributes:
        direction: `change` for a choice or when any direction counts.
        target: a replica, `fleet`, or `any`.
    """

    setting: Annotated[str, AfterValidator(_known_setting)]
    direction: Literal["raise", "lower", "change"] = "change"
    target: str = "any"


class Truth(_Part):
    """What was wrong and what would have helped.

    Attributes:
        layer: None when nothing was wrong.
        cause: short name of the cause; empty when nothing was wrong.
        tunable: whether a setting of ours can mend it.
    """

    layer: Layer | None = None
    cause: str = ""
    tunable: bool = False
    good_actions: tuple[ActionPattern, ...] = ()
    harmful_actions: tuple[ActionPattern, ...] = ()


class Incident(_Part):
    """The contents of incident.toml.

    Attributes:
        provenance: where the samples come from and under which licence.
        stack: facts about the stack that are not in the samples (model, GPU, engine version ...).
        question: what the operator asked.
        window_s: length of the window at the end of the recording to judge; None for all of it.
    """

    title: str = Field(min_length=1)
    provenance: str = Field(min_length=1)
    question: str = Field(min_length=1)
    stack: dict[str, bool | int | float | str] = Field(default_factory=dict)
    window_s: float | None = Field(default=None, gt=0)
    truth: Truth


def read_incident(folder: Path) -> Incident:
    """The case in `folder`, with its truth: for scorers, never for whoever diagnoses.

    Raises:
        InputError: incident.toml is absent or wrong; the text names the file and the field.
    """
    path = folder / INCIDENT_FILE
    try:
        return Incident.model_validate(document(path))
    except ValidationError as error:
        raise InputError(f"{path}: {first_problem(error)}") from error


def write_incident(folder: Path, incident: Incident) -> None:
    """Write incident.toml into `folder`, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / INCIDENT_FILE).write_text(toml_of(incident.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
