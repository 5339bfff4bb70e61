"""Who a person is to the harness, and what that allows."""

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from stack.errors import FlashVectorError


class NotAllowedError(FlashVectorError):
    """The person's role does not allow what was asked; nothing was done. Somebody with that role must ask for it."""


class Role(StrEnum):
    """From least to most authority; each may do what those before it may."""

    VIEWER = "viewer"
    """Looks and asks questions."""
    OPERATOR = "operator"
    """Also asks for changes, decides on proposals and stops."""
    ADMIN = "admin"
    """Also sets policy and mode, and lets changes go on after a stop."""

    @property
    def may_ask_for_changes(self) -> bool:
        """Whether what this person says can become a proposal."""
        return self is not Role.VIEWER

    @property
    def may_decide(self) -> bool:
        """Whether this person's answer to a proposal counts."""
        return self is not Role.VIEWER


RoleOf: TypeAlias = Callable[[str], Role]
"""Tells what a person is now, by their name; asked anew each time."""


def at_the_terminal(_person: str) -> Role:
    """Whoever works at the terminal of this process may operate it, and nobody else can speak there."""
    return Role.OPERATOR
