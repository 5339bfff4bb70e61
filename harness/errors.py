"""What can go wrong inside the harness; the tree continues the one in stack.errors.

InputError
├── StoreError         the journal's database is unusable: the operator must look at the named file
└── LeaseHeldError     another session looks after the stack: the operator must end one of them
FlashVectorError
├── LeaseLostError     another session took over while this one was paused or cut off: this one must end
└── TransitionError    an action was not in the state it had to be in: somebody else moved it, so the caller stops
    └── ApprovalError  an approval does not cover the proposal any more, or never did: it must be decided on anew
"""

from stack.errors import FlashVectorError, InputError


class StoreError(InputError):
    """The database cannot be used; the text names the file, and the file is left as it was."""


class LeaseHeldError(InputError):
    """Somebody else may change the stack and is alive. Nothing was changed."""


class LeaseLostError(FlashVectorError):
    """Somebody else may change the stack by now, so nothing was written to it, nor to the journal."""


class TransitionError(FlashVectorError):
    """A state change that is not legal, or that another process made first. Nothing was changed."""


class ApprovalError(TransitionError):
    """Nobody's leave covers what was to be done. Nothing was changed."""
