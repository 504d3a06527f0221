"""The shapes: one that is published with its result, one of many small appends, one that users suffer from, a drift."""

import math
from statistics import NormalDist
from typing import Literal

from tallymark.bench.case import MB
from tallymark.bench.sizing.shape import Arrival, Shape
from tallymark.engine.settings import SizingSettings
from tallymark.engine.timeline.entry import DataFile

DEFAULT = SizingSettings()

PLAIN_OVER_ENCODED = 3
"""What Parquet makes of rows, where a shape says nothing else."""

VARIATION = 0.02
"""Of the files of a load: what two files with as many rows of one kind differ by."""

EXAMPLE_MB = (40, 80, 90, 130, 105)
EXAMPLE_ROWS, EXAMPLE_ROW_BYTES = 450_000, 1000
EXAMPLE_PLANNED = (80_000, 40_000, 30_000, 120_000, 120_000, 60_000)
"""Rows of each planned file as published: the small files' in the order of their names, then the new ones'."""


def example() -> Shape:
    """Of the article in which Hudi's file sizing was published: MB are millions of bytes."""
    files = tuple(_file(f"f{number}", size * MB) for number, size in enumerate(EXAMPLE_MB, 1))
    arrival = _arrival("", EXAMPLE_ROWS, EXAMPLE_ROWS * EXAMPLE_ROW_BYTES)
    return Shape(
        name="example",
        label="450,000 records of 1,000 bytes to files of 40, 80, 90, 130, 105 MB",
        commits=((arrival,),),
        max_file_bytes=120 * MB,
        small_file_bytes=100 * MB,
        before=files,
    )


def appends(count: int = 200, partitions: int = 50) -> Shape:
    """A stream: every commit has a little for every partition, all alike."""
    commit = tuple(_arrival(f"p={number:04d}", 400, 400_000) for number in range(partitions))
    return Shape(
        name="appends",
        label=f"{count} appends x {partitions} partitions x 0.4 MB",
        commits=(commit,) * count,
        max_file_bytes=DEFAULT.max_file_bytes,
        small_file_bytes=DEFAULT.small_file_bytes,
    )


ICEBERG_BYTES, ICEBERG_ROWS = 415_000 * MB, 1_290_000_000
ICEBERG_TASKS = 720
ICEBERG_HOT, ICEBERG_HOT_BYTES = 2, 720 * 255 * MB
ICEBERG_TAIL = 51
ICEBERG_MEDIAN_BYTES = 457_000
"""Of its files."""


def iceberg(loads: int = 1) -> Shape:
    """The table of github.com/apache/iceberg/issues/16854: 415 GB and 1.29 G rows in 38,246 files, median 457 KB.

    720 tasks, some partitions with 720 files of 255 MB, and a long tail. 53 partitions make 38,160 files of it, two
    with 255 MB files hold 367 GB, and the tail's sizes are taken to be log-normal with that median and the sum left.
    """
    sizes = [ICEBERG_HOT_BYTES] * ICEBERG_HOT + _tail(ICEBERG_BYTES - ICEBERG_HOT * ICEBERG_HOT_BYTES)
    per_row = ICEBERG_BYTES / ICEBERG_ROWS
    commit = tuple(
        _arrival(f"p={number:02d}", round(size / loads / per_row), size // loads) for number, size in enumerate(sizes)
    )
    return Shape(
        name="iceberg",
        label="415 GB in 53 partitions, two of which hold 88 %" + (f", in {loads} loads" if loads > 1 else ""),
        commits=(commit,) * loads,
        max_file_bytes=DEFAULT.max_file_bytes,
        small_file_bytes=DEFAULT.small_file_bytes,
        tasks=ICEBERG_TASKS,
        variation=VARIATION,
    )


def _tail(total: int) -> list[int]:
    """Quantiles of the log-normal distribution about the median whose sum is the total."""
    median = ICEBERG_MEDIAN_BYTES * ICEBERG_TASKS
    normal = [NormalDist().inv_cdf((number + 0.5) / ICEBERG_TAIL) for number in range(ICEBERG_TAIL)]
    low, high = 0.0, 5.0
    for _ in range(60):
        sigma = (low + high) / 2
        is_enough = sum(median * math.exp(sigma * value) for value in normal) >= total
        low, high = (low, sigma) if is_enough else (sigma, high)
    return [round(median * math.exp(high * value)) for value in reversed(normal)]


DRIFT_COMMITS, DRIFT = 20, 5.0
DRIFT_ROWS, DRIFT_ROW_BYTES = 5_000_000, 200
DRIFT_PARTITIONS, DRIFT_TASKS = 4, 8


Drift = Literal["longer", "worse", "better"]

DRIFTS: dict[Drift, str] = {
    "longer": "records become longer, from 200 to 1,000 bytes",
    "worse": "records compress less and less, from 200 to 1,000 bytes",
    "better": "records compress more and more, from 1,000 to 200 bytes",
}


def drift(how: Drift) -> Shape:
    """Records that take five times as much in the end as in the beginning, or a fifth, changing alike in each commit.

    That they become longer shows before they are encoded. How they compress only shows in files.
    """
    commits = []
    for number in range(DRIFT_COMMITS):
        grown = DRIFT ** (number / (DRIFT_COMMITS - 1))
        size = round(DRIFT_ROWS * DRIFT_ROW_BYTES * (DRIFT / grown if how == "better" else grown))
        plain = PLAIN_OVER_ENCODED * (size if how == "longer" else round(DRIFT_ROWS * DRIFT_ROW_BYTES * DRIFT))
        commits.append(
            tuple(Arrival(f"p={partition}", DRIFT_ROWS, plain, size) for partition in range(DRIFT_PARTITIONS))
        )
    return Shape(
        name=f"drift-{how}",
        label=f"{DRIFT_COMMITS} appends x {DRIFT_PARTITIONS} partitions; {DRIFTS[how]}",
        commits=tuple(commits),
        max_file_bytes=DEFAULT.max_file_bytes,
        small_file_bytes=DEFAULT.small_file_bytes,
        tasks=DRIFT_TASKS,
        variation=VARIATION,
    )


def _arrival(partition: str, rows: int, size: int) -> Arrival:
    return Arrival(partition, rows, PLAIN_OVER_ENCODED * size, size)


def _file(name: str, size: int) -> DataFile:
    return DataFile("", f"{name}_0_0.parquet", size // EXAMPLE_ROW_BYTES, size, PLAIN_OVER_ENCODED * size)
