"""What is written: the shapes of ``sizing``, as much smaller as it takes for one machine to write them in minutes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tallymark.bench.sizing import shapes
from tallymark.bench.sizing.source import BYTES_A_PIECE, Load
from tallymark.engine.settings import SizingSettings

Name = Literal["appends", "iceberg", "drift"]

MIB = 1 << 20

APPENDS, APPEND_PARTITIONS, APPEND_BYTES = 20, 10, 400_000
APPEND_PIECES = 10

ICEBERG_BYTES, ICEBERG_LOADS, ICEBERG_TASKS, ICEBERG_PIECES = 100_000_000, 4, 16, 70

DRIFTS, DRIFT_PARTITIONS, DRIFT_ROWS = 8, 2, 40_000
DRIFT_PIECES = (20, 100)
"""At first and at last: five times as many."""

MAX_FILE_BYTES = 4 * MIB
"""At scale 1: a load of 100 MB makes some twenty-five."""

FILE_BYTES_MIN = 64 * 1024
"""However small the scale: below, a file is mostly footer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCase:
    name: Name
    label: str
    loads: tuple[Load, ...]
    max_file_bytes: int

    @property
    def small_file_bytes(self) -> int:
        """The same share of the maximum as by default."""
        return self.max_file_bytes * SizingSettings().small_file_bytes // SizingSettings().max_file_bytes


def case(name: Name, scale: float) -> WrittenCase:
    """``scale``: times as many rows, and files as many times as large, but for the appends', which stay small."""
    max_file_bytes = max(FILE_BYTES_MIN, round(MAX_FILE_BYTES * scale))
    match name:
        case "appends":
            rows = max(1, round(scale * APPEND_BYTES / (APPEND_PIECES * BYTES_A_PIECE)))
            load = Load(rows=(rows,) * APPEND_PARTITIONS, pieces=APPEND_PIECES, tasks=4)
            label = f"{APPENDS} appends x {APPEND_PARTITIONS} partitions x {0.4 * scale:.2g} MB"
            return WrittenCase(
                name=name, label=label, loads=(load,) * APPENDS, max_file_bytes=SizingSettings().max_file_bytes
            )
        case "iceberg":
            load = Load(rows=tuple(_iceberg_rows(scale)), pieces=ICEBERG_PIECES, tasks=ICEBERG_TASKS)
            label = f"{ICEBERG_LOADS} loads of {load.bytes / 1e6:.3g} MB, 53 partitions, {ICEBERG_TASKS} tasks"
            return WrittenCase(name=name, label=label, loads=(load,) * ICEBERG_LOADS, max_file_bytes=max_file_bytes)
        case "drift":
            loads = tuple(_drifting(max(1, round(DRIFT_ROWS * scale))))
            label = f"{DRIFTS} appends x {DRIFT_PARTITIONS} partitions; records become five times as long"
            return WrittenCase(name=name, label=label, loads=loads, max_file_bytes=max_file_bytes)


def _iceberg_rows(scale: float) -> Iterator[int]:
    """Of each partition; none without any."""
    [commit] = shapes.iceberg().commits
    whole = sum(arrival.bytes for arrival in commit)
    for arrival in commit:
        yield max(1, round(scale * ICEBERG_BYTES * arrival.bytes / whole / (ICEBERG_PIECES * BYTES_A_PIECE)))


def _drifting(rows: int) -> Iterator[Load]:
    first, last = DRIFT_PIECES
    for number in range(DRIFTS):
        pieces = round(first * (last / first) ** (number / (DRIFTS - 1)))
        yield Load(rows=(rows,) * DRIFT_PARTITIONS, pieces=pieces, tasks=4)
