"""How much the loop may do by itself."""

from enum import StrEnum


class Mode(StrEnum):
    """Shadow decides and never acts; approve asks a person for every change; auto acts on class A by itself."""

    SHADOW = "shadow"
    APPROVE = "approve"
    AUTO = "auto"
