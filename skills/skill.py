"""What a skill is: a function whose signature and docstring are all that a model is told about it."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from harness.action import Action, Forecast
from harness.diagnosis import Finding
from harness.objective import Slo
from stack.errors import InputError
from stack.layer import Layer
from stack.setting import Value
from stack.snapshot import Snapshot

SkillEffect: TypeAlias = Literal["read", "propose"]
Result: TypeAlias = tuple[Finding, ...] | Action


class SkillError(InputError):
    """A skill was called with arguments it cannot use; the text says which, what was expected and what was found."""


class NotApplicableError(SkillError):
    """The arguments are sound, but in this situation the skill has nothing to offer; the text says why."""


@dataclass(frozen=True, kw_only=True)
class PastEpisode:
    """What was tried before in a similar situation, and how it ended.

    Attributes:
        ending: one of the four endings.
        measured: improved, worse, inconclusive or unmeasured; empty when nothing was looked at.
        similarity_ratio: 1 for the same stack and traffic just now, towards 0 with age and distance.
        age_s: how long ago it ended.
    """

    cause: str
    setting: str
    target: str
    before: Value
    after: Value
    ending: str
    measured: str
    similarity_ratio: float
    age_s: float


Recall: TypeAlias = Callable[[str], Sequence[PastEpisode]]
"""Similar episodes about a cause, most similar first."""
ForecastOf: TypeAlias = Callable[[Action], Forecast | None]
"""Predicted effect of a change; None when there is no sound one."""


def no_episodes(_cause: str) -> Sequence[PastEpisode]:
    """A memory that is empty."""
    return ()


def no_forecast(_action: Action) -> Forecast | None:
    """A stack of which nothing can be predicted."""
    return None


@dataclass(frozen=True, kw_only=True)
class SkillContext:
    """All that a skill may look at. It holds nothing that can change the stack.

    Attributes:
        slo: what users were promised.
        enabled: names of the settings that may be changed.
        usual_token_time_s: fleet's mean time between tokens at this work and these settings; None when not known.
    """

    snapshot: Snapshot
    slo: Slo = field(default_factory=Slo)
    enabled: frozenset[str] = frozenset()
    recall: Recall = no_episodes
    forecast: ForecastOf = no_forecast
    usual_token_time_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Skill:
    """One capability, declared.

    Attributes:
        effect: `read` returns findings, `propose` returns an action; neither acts.
        layer: the layer it looks at or changes; None when it concerns all.
        setting: the setting it proposes to change; None when it reads.
        description: the docstring without its sections.
        parameters: JSON schema of the arguments, without the context.
    """

    name: str
    effect: SkillEffect
    layer: Layer | None
    setting: str | None
    description: str
    parameters: Mapping[str, Any]
    arguments: type[BaseModel]
    function: Callable[..., Result]

    def __call__(self, ctx: SkillContext, /, **arguments: object) -> Result:
        """Check the arguments and run the skill.

        Raises:
            SkillError: an argument is missing, unknown or out of bounds, or the skill cannot use it.
        """
        try:
            checked = self.arguments.model_validate(arguments)
        except ValidationError as error:
            raise SkillError(f"{self.name}: {_one_line(error)}") from error
        return self.function(ctx, **{name: getattr(checked, name) for name in type(checked).model_fields})


def skill(
    *, effect: SkillEffect, layer: Layer | None = None, setting: str | None = None
) -> Callable[[Callable[..., Result]], Skill]:
    """Declare a function as a skill.

    Its first parameter is the context, which a model never sees. Every other one needs a type and a line under
    `Args:`; bounds are written as `Annotated[float, Field(ge=0, le=256)]`.

    Raises:
        TypeError: when a type, a description or the context is missing; at import, so that it cannot go unseen.
    """

    def declare(function: Callable[..., Result]) -> Skill:
        name = function.__name__
        text, described = _docstring(function)
        hints = get_type_hints(function, include_extras=True)
        if (setting is None) is (effect == "propose"):
            raise TypeError(f"{name}: a skill that proposes names its setting, one that reads has none")
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or hints.get(parameters[0].name) is not SkillContext:
            raise TypeError(f"{name}: the first parameter must be `ctx: SkillContext`")
        fields: dict[str, Any] = {p.name: _argument(name, p, hints, described) for p in parameters[1:]}
        unknown = sorted(set(described) - set(fields))
        if unknown:
            raise TypeError(f"{name}: `Args:` describes {unknown[0]!r}, which is not a parameter")
        config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
        model = create_model(name, __config__=config, **fields)
        schema = model.model_json_schema()
        schema.pop("title", None)
        return Skill(
            name=name,
            effect=effect,
            layer=layer,
            setting=setting,
            description=text,
            parameters=schema,
            arguments=model,
            function=function,
        )

    return declare


def _argument(
    name: str, parameter: inspect.Parameter, hints: Mapping[str, Any], described: Mapping[str, str]
) -> tuple[Any, FieldInfo]:
    hint = hints.get(parameter.name)
    kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if kind is None or kind in (Any, object, dict):
        raise TypeError(f"{name}: parameter {parameter.name!r} needs a type that a model can be told")
    if parameter.name not in described:
        raise TypeError(f"{name}: parameter {parameter.name!r} needs a line under `Args:`")
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return hint, Field(default, description=described[parameter.name])


def _docstring(function: Callable[..., Result]) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the entries of the `Args:` section."""
    whole = inspect.getdoc(function) or ""
    head, _, rest = whole.partition("\nArgs:\n")
    text = re.split(r"\n(?:Returns|Raises):\n", head)[0].strip()
    if not text:
        raise TypeError(f"{function.__name__}: a skill needs a docstring, as it is all that a model is told")
    section = re.split(r"\n(?=\S)", rest)[0]
    entries = re.findall(r"^    (\w+): (.+(?:\n {8,}.+)*)", section, flags=re.MULTILINE)
    return " ".join(text.split()), {name: " ".join(words.split()) for name, words in entries}


def _one_line(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "arguments"
    return f"{where}: {problem['msg']}, found {problem['input']!r}".replace("\n", " ")
