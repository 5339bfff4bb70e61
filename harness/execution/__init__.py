"""Execution: the only place from which a stack is written to.

Order: permit row committed, write, read back, settle, judge, keep or undo. The undo is a stored absolute value, so
that repeating it changes nothing; rolling back asks no model, no person and no metric.
"""

from harness.execution.executor import Executor

__all__ = ["Executor"]
