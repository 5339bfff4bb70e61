"""The kernels, as plain Python or compiled by numba from the same source, with the same results."""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from stack.errors import InputError
from stack.simulator.engine import (
    block_pool,
    interpolation,
    lanes,
    layout,
    leaving,
    meter,
    prefix_cache,
    routing,
    run,
    scheduling,
    step,
)
from stack.simulator.engine.layout import SAMPLE_TABLES, SAMPLE_WORLD, Tables, World

WITHOUT_NUMBA = "numba is not installed, with which the simulator is about 50 times as fast (pip install numba)"

_MODULES = (interpolation, meter, lanes, block_pool, prefix_cache, leaving, scheduling, step, routing, run)
"""In the order of their imports: a function is compiled after those it calls."""


_ENTRIES = ("advance", "lose", "resize", "begin_restart", "end_restart")
"""Functions that Python calls; the others need no wrapper for it, which halves the time to compile."""


@dataclass(frozen=True)
class Kernels:
    """What the simulation calls; see the functions of the same names."""

    advance: Callable[[World, Tables, float], None]
    lose: Callable[[World, int, float], None]
    resize: Callable[[World, int], None]
    begin_restart: Callable[[World, int, float], None]
    end_restart: Callable[[World, int], None]


_Arrays = TypeVar("_Arrays", World, Tables)


def _viewed(arrays: _Arrays) -> _Arrays:
    """The same memory, seen so that one entry is read as a plain number, which Python computes with twice as fast."""
    return type(arrays)(*(memoryview(array) for array in arrays))  # type: ignore[arg-type]


PLAIN = Kernels(
    lambda world, tables, until_s: run.advance(_viewed(world), _viewed(tables), until_s),
    lambda world, r, t: run.lose(_viewed(world), r, t),
    lambda world, r: block_pool.resize(_viewed(world), r),
    lambda world, r, t: run.begin_restart(_viewed(world), r, t),
    lambda world, r: run.end_restart(_viewed(world), r),
)


def available() -> bool:
    """Whether numba can be imported."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def kernels(compiled: bool | None) -> Kernels:
    """Compiled kernels, plain ones, or with None whatever this machine has.

    Raises:
        InputError: compiled ones are wanted and numba is not installed.
    """
    if compiled and not available():
        raise InputError(WITHOUT_NUMBA)
    if compiled is None:
        compiled = available()
        if not compiled:
            _warn_once()
    return _compiled() if compiled else PLAIN


@cache
def _warn_once() -> None:
    logging.getLogger(__name__).warning("%s; plain Python takes over", WITHOUT_NUMBA)


@cache
def _compiled() -> Kernels:
    """Every kernel with its callees replaced by compiled ones; machine code is kept on disk between processes."""
    numba: Any = import_module("numba")
    made: dict[str, Any] = {}
    with _cache_folder(numba.config):
        for module in _MODULES:
            scope = {**vars(module), **made}
            for name, function in _functions(module):
                clone = FunctionType(function.__code__, scope, name, function.__defaults__)
                clone.__module__, clone.__qualname__ = function.__module__, name
                clone.__annotations__ = function.__annotations__
                scope[name] = made[name] = numba.njit(**_options(name))(clone)
        for name in made:
            _compile(name, made)
    return Kernels(*(made[name] for name in _ENTRIES))


def _options(name: str) -> dict[str, bool | str]:
    """How numba compiles a kernel.

    Kernels allocate nothing, so numba's reference counting (`_nrt`) is off: its atomic counts take half the time.
    """
    inner = name not in _ENTRIES
    return {
        "cache": True,
        "error_model": "numpy",
        "no_cpython_wrapper": inner,
        "no_cfunc_wrapper": inner,
        "_nrt": False,
    }


def _compile(name: str, made: dict[str, Any]) -> None:
    """Compile a kernel once, for the types of its annotations, after those it calls."""
    function = made[name].py_func
    if made[name].signatures:
        return
    for callee in function.__code__.co_names:
        if callee in made and callee != name:
            _compile(callee, made)
    signature = _signature(function)
    if signature is not None:
        made[name].compile(signature)
        made[name].disable_compile()


def _signature(function: FunctionType) -> object | None:
    """Numba's signature from the annotations, so that each kernel is compiled once; None lets numba infer it."""
    numba: Any = import_module("numba")
    types = {
        int: numba.int64,
        float: numba.float64,
        bool: numba.boolean,
        None: numba.void,
        tuple[int, bool]: numba.types.Tuple((numba.int64, numba.boolean)),
        World: numba.typeof(SAMPLE_WORLD),
        Tables: numba.typeof(SAMPLE_TABLES),
    }
    annotations = dict(function.__annotations__)
    result = annotations.pop("return")
    if any(one not in types for one in annotations.values()):
        return None
    signature: object = types[result](*(types[one] for one in annotations.values()))
    return signature


def _functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield name, value


@contextmanager
def _cache_folder(config: ModuleType) -> Iterator[None]:
    """Point numba's cache at a folder named after all kernel sources.

    Numba looks only at a function's own file to tell whether its cached code is stale, not at those of its callees.
    """
    paths = [Path(__file__), *(Path(str(module.__file__)) for module in (layout, *_MODULES))]
    sources = b"".join(path.read_bytes() for path in paths)
    folder = Path(__file__).parent / "__pycache__"
    if not os.access(folder.parent, os.W_OK):
        folder = Path.home() / ".cache" / "flashvector"
    folder /= f"kernels-{hashlib.sha256(sources).hexdigest()[:16]}"
    settings = vars(config)
    before = settings["CACHE_DIR"]
    settings["CACHE_DIR"] = str(folder)
    try:
        yield
    finally:
        settings["CACHE_DIR"] = before
