"""A call in a process of its own, for the memory that it takes: spawned and not forked, so that this one's does not
count.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from tallymark.bench.writes.process_tree import peak_bytes

T = TypeVar("T")


def run_apart(call: Callable[..., T], *given: Any) -> tuple[T, int, int]:
    """Return the result, the bytes that the process has held before the call (Python and its libraries), and the most
    in all: resident pages, shared ones included (VmHWM). Blocking.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        return processes.submit(_measured, call, given).result()


def _measured(call: Callable[..., T], given: tuple[Any, ...]) -> tuple[T, int, int]:
    before = _peak()
    return call(*given), before, _peak()


def _peak() -> int:
    return peak_bytes(Path("/proc/self/status"))
