"""The data files that markers are asked for: names as a task gives them, of 95 bytes, and no file behind them."""

from collections.abc import Iterator
from itertools import count

PARTITIONS = 300

MARKER_BYTES = 110
"""Of a line in a segment: the path, ``.marker.CREATE`` and a newline."""


def paths(instant: str, series: int) -> Iterator[str]:
    """New ones without end: those of other series of an instant are others."""
    for number in count():
        partition = f"event_date=2026-{1 + number % PARTITIONS // 28:02}-{1 + number % 28:02}"
        file_id = f"{series:08x}-0000-4000-8000-{number:012x}-0"
        yield f"{partition}/{file_id}_{number % 1000:04}-0-0_{instant}.parquet"


def instant(number: int) -> str:
    """Of the harness: one for each load that is to begin with no markers."""
    return f"202601010000{number:05}"
