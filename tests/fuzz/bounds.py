"""How much memory an input may take, and what tells that it took more."""

import resource
from collections.abc import Callable

INPUT_BYTES_MAX = 4096
"""Long enough for every seed and some more of its parts."""

ROOM_BYTES = 8 << 20
"""By which one such input may raise what the process has ever held: two thousand times its size."""


def held_within(target: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """The target, which also fails where an input takes more than its room. It costs a microsecond."""

    def bounded(data: bytes) -> None:
        before = peak_bytes()
        target(data)
        grown = peak_bytes() - before
        assert grown <= ROOM_BYTES, f"{len(data)} bytes took {grown}"

    return bounded


def peak_bytes() -> int:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
