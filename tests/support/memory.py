"""What memory something takes."""

import tracemalloc
from collections.abc import Callable


def taken_bytes(act: Callable[[], object]) -> int:
    """The most that Python's allocator has held for it at once; slow, and exact."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
