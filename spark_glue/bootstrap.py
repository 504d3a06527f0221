"""First lines of each task, which also run where Tallymark cannot be imported, and report that.

This module travels by value. It may import nothing but the standard library.
"""

import functools
import importlib
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark import cloudpickle

_pickler: Any = cloudpickle  # Spark's own, which is not typed


def begun(task: Callable[..., Iterator[Any]], sent: Any = None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the task with these lines before it, ready to travel. Runs in the driver.

    ``sent`` is a broadcast, whose value the task gets before its batches.
    """
    version: str = importlib.import_module("tallymark").__version__
    return functools.partial(by_value(start), version, _pickler.dumps(task), sent)


def by_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of this module, to be pickled with its code instead of by its name. Runs in the driver."""
    _pickler.register_pickle_by_value(sys.modules[__name__])
    return function


def start(version: str, task: bytes, sent: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """Run a pickled task on the batches. Raises ImportError, naming Python and host, where Tallymark has another
    version.
    """
    word = lacking("tallymark", version)
    if word is not None:
        raise ImportError(word)
    run: Callable[..., Iterator[Any]] = _pickler.loads(task)
    return run(batches) if sent is None else run(sent.value, batches)


def look(module: str, _: Iterable[Any]) -> Iterator[str | None]:
    """Yield one row per task: what is wrong with its Python, or None."""
    yield lacking(module)


def lacking(module: str, version: str | None = None) -> str | None:
    """Return what is wrong with this process's Python, in one line: it cannot import the module, or has another
    version.
    """
    python = f"Python {platform.python_version()} at {sys.executable} on host {platform.node()}"
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        return f"{python} cannot import {module} ({error})"
    if version is not None and found.__version__ != version:
        return f"{python} has {module} {found.__version__} at {found.__file__}, and the driver has {version}"
    return None
