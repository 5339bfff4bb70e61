"""A skill is its signature and docstring; what a model could misunderstand fails at import."""

from typing import Annotated

import pytest
from made_snapshots import context, pool
from pydantic import Field

from harness.diagnosis import Finding
from skills import SKILLS
from skills.skill import SkillContext, SkillError, skill
from stack.layer import Layer


@skill(effect="read", layer=Layer.CACHE)
def echo(ctx: SkillContext, share: Annotated[float, Field(ge=0, le=1)], word: str = "x") -> tuple[Finding, ...]:
    """Say it back.

    Twice if need be.

    Args:
        share: how much,
            between nothing and all.
        word: what to say.
    """
    return (
        Finding(
            layer=Layer.CACHE,
            cause=word,
            claim=f"{ctx.snapshot.scrapes}",
            severity=share,
            confidence=1.0,
            tunable=False,
        ),
    )


def test_schema_comes_from_signature_and_docstring():
    share = echo.parameters["properties"]["share"]
    assert echo.description == "Say it back. Twice if need be."
    assert (share["minimum"], share["maximum"], share["type"]) == (0, 1, "number")
    assert share["description"] == "how much, between nothing and all."
    assert echo.parameters["required"] == ["share"]
    assert echo.parameters["additionalProperties"] is False


def test_it_runs_with_checked_arguments():
    (finding,) = echo(context(pool({})), share=0.5)
    assert (finding.severity, finding.cause) == (0.5, "x")


@pytest.mark.parametrize(
    "arguments", [{}, {"share": 2}, {"share": float("nan")}, {"share": "much"}, {"share": 0.5, "force": True}]
)
def test_unusable_arguments_are_one_clear_line(arguments):
    with pytest.raises(SkillError, match=r"^echo: \w+: .*found") as caught:
        echo(context(pool({})), **arguments)
    assert "\n" not in str(caught.value)


def test_a_parameter_without_type_fails_at_once():
    def untyped(ctx: SkillContext, share):
        """Text.

        Args:
            share: how much.
        """

    with pytest.raises(TypeError, match="'share' needs a type"):
        skill(effect="read")(untyped)


def test_a_parameter_without_description_fails_at_once():
    def undescribed(ctx: SkillContext, share: float):
        """Text."""

    with pytest.raises(TypeError, match="'share' needs a line under `Args:`"):
        skill(effect="read")(undescribed)


def test_a_described_parameter_that_does_not_exist_fails_at_once():
    def renamed(ctx: SkillContext, share: float):
        """Text.

        Args:
            share: how much.
            part: how much.
        """

    with pytest.raises(TypeError, match="'part'"):
        skill(effect="read")(renamed)


def test_a_skill_without_docstring_or_context_fails_at_once():
    def silent(ctx: SkillContext):
        pass

    def blind(share: float):
        """Text."""

    with pytest.raises(TypeError, match="docstring"):
        skill(effect="read")(silent)
    with pytest.raises(TypeError, match="ctx: SkillContext"):
        skill(effect="read")(blind)


def test_every_skill_is_told_apart_and_described():
    names = [one.name for one in SKILLS]
    assert len(set(names)) == len(names)
    assert all(one.effect in ("read", "propose") for one in SKILLS)
    for one in SKILLS:
        assert "ctx" not in one.parameters["properties"]
        assert all(argument["description"] for argument in one.parameters["properties"].values())
