"""Who a person is to the harness, and what that allows."""

from enum import StrEnum

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
