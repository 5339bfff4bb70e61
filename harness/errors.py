"""What can go wrong inside the harness; the tree continues the one in stack.errors.

InputError
└── StoreError         the journal's database is unusable: the operator must look at the named file
FlashVectorError
└── TransitionError    an action was not in the state it had to be in: somebody else moved it, so the caller stops
"""

from stack.errors import FlashVectorError, InputError


class StoreError(InputError):
    """The database cannot be used; the text names the file, and the file is left as it was."""


class TransitionError(FlashVectorError):
    """A state change that is not legal, or that another process made first. Nothing was changed."""
