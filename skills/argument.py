"""The arguments that propose skills share, bounded by the catalogue so that bounds are written once."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from stack.catalogue import setting_named

Target: TypeAlias = Annotated[str, Field(min_length=1, max_length=120)]
Cause: TypeAlias = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[a-z0-9_]+$")]
Wanted: TypeAlias = float | Annotated[str, Field(max_length=60)]
Reason: TypeAlias = Annotated[str, Field(min_length=1, max_length=300)]


def number_of(setting: str) -> Any:  # noqa: ANN401 - pydantic's own type for Field()
    """Bounds of a numeric setting, for use in `Annotated`."""
    declared = setting_named(setting)
    return Field(ge=declared.low, le=declared.high)


def choice_of(setting: str) -> Any:  # noqa: ANN401 - pydantic's own type for Field()
    """Names that a setting may take, for use in `Annotated`."""
    return Field(json_schema_extra={"enum": list(setting_named(setting).choices)})
