"""What rows will take is told by what rows have taken: real Parquet files, and files of made-up sizes."""

import io
import random
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallymark.engine.arrow.plain_size import plain_bytes
from tallymark.engine.sizing import IncomingRows, Sample
from tallymark.engine.sizing.estimate import GUESSED_RATIO, GUESSED_ROW_BYTES, Estimates
from tallymark.engine.sizing.evidence import FOOTER_BYTES
from tallymark.engine.sizing.planning import by_partition
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile

MB = 1_000_000


def file(partition: str, commit: int, *, rows: int, bytes_: int, plain: int = 0) -> DataFile:
    return DataFile(partition, f"f{commit}_0-0-0_{commit:017}.parquet", rows, FOOTER_BYTES + bytes_, plain)


def expected(rows: IncomingRows, files: Iterable[DataFile] = (), sample: Sample | None = None) -> int:
    return Estimates.of([rows], by_partition(files), sample).bytes_of(rows)


def partition(path: str, commits: Iterable[int], mb: int) -> list[DataFile]:
    """100,000 rows of so many megabytes, each commit."""
    return [file(path, commit, rows=100_000, bytes_=mb * MB) for commit in commits]


def measured(path: str, commit: int, mb: float, plain_mb: float = 4, rows: int = 1000) -> DataFile:
    return file(path, commit, rows=rows, bytes_=round(mb * MB), plain=round(plain_mb * MB))


ROWS, PLAIN, FEW = IncomingRows("a", 100_000), IncomingRows("a", 100_000, 8 * MB), IncomingRows("a", 1000)
SOME, MANY = IncomingRows("a", 1000, 4 * MB), IncomingRows("a", 10**6, 200 * MB)
MEASURED = file("a", 2, rows=100_000, bytes_=MB, plain=4 * MB)
ALIKE = [each for path in "bcd" for each in partition(path, (1, 2), 10)]
DAYS = [each for day in range(100) for each in partition(f"day={day}", [day], 10 + day)]
SAMPLE = Sample(rows=10_000, plain_bytes=400_000, encoded_bytes=100_000)
WIDE_SAMPLE = Sample(rows=10_000, plain_bytes=40 * MB, encoded_bytes=20 * MB)

SMALL = [measured(path, commit, mb, 0.2) for commit in range(12) for path, mb in (("a", 0.1), ("b", 0.2))]
"""Twelve small files in each of two partitions; the rows of ``b`` take twice as many bytes."""

OF_BOTH = Sample(rows=10**6, plain_bytes=200 * MB, encoded_bytes=75 * MB)
"""In a large file rows come to half: of the dictionaries and footers of small ones nothing is left."""

TINY_SAMPLE = Sample(rows=100, plain_bytes=20_000, encoded_bytes=20_000)

EVIDENCE = {
    "a few rows are like those elsewhere": (ROWS, [*ALIKE, file("a", 3, rows=10, bytes_=10_000)], None, 10 * MB, 0.35),
    "a new partition is like the newest": (replace(ROWS, partition="day=100"), DAYS, None, 108 * MB, 0.02),
    "measured rows count by their plain bytes": (PLAIN, [MEASURED], None, 2 * MB, 0.01),
    "of measured files alone": (PLAIN, [MEASURED, *partition("a", [1], 50)], None, 2 * MB, 0.01),
    "where none is measured rows count": (PLAIN, partition("a", [1], 1), None, MB, 0.01),
    "a footer is not counted as rows": (FEW, [file("a", 1, rows=100, bytes_=10_000)], None, 100_000, 0.01),
    "without files a sample counts by plain bytes": (PLAIN, [], SAMPLE, 2 * MB, 0),
    "without files and plain bytes a sample counts by rows": (ROWS, [], SAMPLE, MB, 0),
    "without anything plain bytes make a low guess": (PLAIN, [], None, 8 * MB * GUESSED_RATIO, 0),
    "without anything rows make a low guess": (ROWS, [], None, 100_000 * GUESSED_ROW_BYTES, 0),
    "empty ones show nothing": (FEW, [DataFile("a", "f", 0, 0)], Sample(0, 0, 0), 1000 * GUESSED_ROW_BYTES, 0),
    "one odd commit is not believed alone": (
        *(ROWS, [*partition("a", range(8), 10), *partition("a", [8], 100)]),
        *(None, 30 * MB, 0.66),
    ),
    "a drift is followed from the third commit on": (
        *(SOME, [measured("a", 0, 1), measured("a", 1, 1.09)]),
        *(None, 1.09**2 * MB, 0.08),
    ),
    "downwards, too": (SOME, [measured("a", 0, 1), measured("a", 1, 1 / 1.09)], None, 1.09**-2 * MB, 0.08),
    "half of a drift that two commits show is believed: it may be chance": (
        *(IncomingRows("a", 1000, 40 * MB), [measured("a", 0, 10, 40), measured("a", 1, 11, 40)]),
        *(None, 11.4 * MB, 0.017),
    ),
    "a small file after a large one takes more for being few, not for being later": (
        *(IncomingRows("a", 10**6, 60 * MB), [measured("a", 1, 60, 60, 10**6), measured("a", 2, 0.058, 0.032)]),
        *(None, 60 * MB, 0.12),
    ),
    "and before a large one not for being earlier": (
        *(IncomingRows("a", 10**6, 60 * MB), [measured("a", 1, 0.058, 0.032), measured("a", 2, 60, 60, 10**6)]),
        *(None, 60 * MB, 0.12),
    ),
    "partitions of one commit each show no drift": (
        *(IncomingRows("day=2", 1000, 10 * MB), [measured("day=0", 0, 2, 10), measured("day=1", 1, 3, 10)]),
        *(None, 2.5 * MB, 0.2),
    ),
    "what a sample takes is not drawn out": (
        *(replace(SOME, partition="b"), [measured("a", 1, 1)]),
        *(WIDE_SAMPLE, 1.5 * MB, 0.33),
    ),
    "where all files are small a sample tells the level": (MANY, SMALL, OF_BOTH, 50 * MB, 0.1),
    "and they how partitions differ": (replace(MANY, partition="b"), SMALL, OF_BOTH, 100 * MB, 0.1),
    "and of a new one the sample tells": (replace(MANY, partition="c"), SMALL, OF_BOTH, 75 * MB, 0.1),
    "beside one large file a sample is one more voice": (
        *(MANY, [*SMALL, measured("a", 12, 10, 20, 10**5)]),
        *(OF_BOTH, 100 * MB, 0.1),
    ),
    "a small sample tells no more than small files": (MANY, SMALL, TINY_SAMPLE, 100 * MB, 0.1),
}


@pytest.mark.parametrize(("rows", "files", "sample", "bytes_", "rel"), EVIDENCE.values(), ids=EVIDENCE)
def test_rows_are_expected_to_take_what_the_best_evidence_shows(
    rows: IncomingRows, files: list[DataFile], sample: Sample | None, bytes_: float, rel: float
) -> None:
    assert expected(rows, files, sample) == pytest.approx(bytes_, rel=rel)


def test_rows_that_compress_less_and_less_are_followed() -> None:
    """Nothing of that shows in plain bytes: only in what files have come to."""
    files = [measured("a", commit, 1.088**commit) for commit in range(20)]
    errors = [expected(SOME, files[:commit]) / MB / 1.088**commit - 1 for commit in range(4, 20)]
    assert max(map(abs, errors)) < 0.1


def test_files_that_only_vary_are_not_taken_for_a_drift() -> None:
    drawn = random.Random(3)
    errors = []
    for _ in range(200):
        files = [measured("a", commit, drawn.lognormvariate(0, 0.1)) for commit in range(8)]
        errors.append(abs(expected(SOME, files) / MB - 1))
    assert sum(errors) / len(errors) < 0.06


OLD, NOT_MEASURED = measured("a", 1, 1), file("a", 1, rows=1000, bytes_=MB)

GROWN = {
    "rows that come anew and longer by half make it grow": (OLD, (250, 250 * 6000), pytest.approx(125_000, rel=0.01)),
    "as long as they were": (OLD, (250, 250 * 4000), 0),
    "shorter": (OLD, (250, 250 * 2000), pytest.approx(-125_000, rel=0.01)),
    "all of its rows, to nothing": (OLD, (1000, 1), pytest.approx(-MB, abs=10)),
    "more rows than it has replace all that it has": (OLD, (2000, 8 * MB), pytest.approx(MB, rel=0.01)),
    "rows that were not measured": (OLD, (250,), 0),
    "its own were not measured": (NOT_MEASURED, (250, 10 * MB), 0),
    "it has no rows": (DataFile("a", "f", 0, 0, 5), (250, 10 * MB), 0),
}


@pytest.mark.parametrize(("updated", "counts", "bytes_"), GROWN.values(), ids=GROWN)
def test_a_file_is_expected_to_grow_by_what_its_updates_are_longer(
    updated: DataFile, counts: tuple[int, ...], bytes_: object
) -> None:
    """Beside a measured file; one that was not measured is expected to stay as it is."""
    updates = FileUpdates(updated, *counts)
    estimates = Estimates.of([], by_partition([updated, OLD]), None, [updates])
    assert estimates.bytes_with(updates) - updated.bytes == bytes_


def test_in_which_order_the_files_come_does_not_matter() -> None:
    drawn = random.Random(7)
    files = []
    for number in range(400):
        name = f"f{number}_0_{number % 9:017}.parquet"
        counts = drawn.randint(1, 9999), drawn.randint(1, MB), drawn.randint(0, MB)
        files.append(DataFile(f"p={number % 40}", name, *counts))
    incoming = [IncomingRows(f"p={number}", 100, 10_000 * (number % 3)) for number in range(3)]
    told = [[expected(rows, order) for rows in incoming] for order in (files, files[::-1], sorted(files, key=str))]
    assert told[0] == told[1] == told[2]


def encoded(rows: pa.Table) -> int:
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd")
    return sink.tell()


def events(count: int, text_bytes: int, seed: int) -> pa.Table:
    """Rows whose text has about so many bytes, of words that recur."""
    drawn = random.Random(seed)
    words = [f"{number:06x}" for number in range(0, 200_000, 7)]
    texts = [" ".join(drawn.choices(words, k=max(1, text_bytes // 7))) for _ in range(count)]
    return pa.table({"at": range(count), "kind": drawn.choices(["view", "click", "buy"], k=count), "text": texts})


def test_rows_that_become_five_times_longer_are_seen_before_they_are_written() -> None:
    files: list[DataFile] = []
    errors = []
    for commit, text_bytes in enumerate((40, 40, 70, 100, 140, 200)):
        rows = events(2000, text_bytes, seed=commit)
        incoming = IncomingRows("a", rows.num_rows, plain_bytes(rows))
        actual = encoded(rows)
        errors.append(abs(FOOTER_BYTES + expected(incoming, files) - actual) / actual)
        files.append(DataFile("a", f"f_0_{commit:017}.parquet", rows.num_rows, actual, plain_bytes(rows)))
    assert max(errors[2:]) < 0.1


def test_small_files_tell_what_larger_ones_take_but_for_a_few_percent() -> None:
    """Of 60 KB the footer's part is taken off; the dictionaries' is not."""
    few, many = events(1500, 60, seed=1), events(12_000, 60, seed=2)
    files = [DataFile("a", "f_0_20130101000000000.parquet", few.num_rows, encoded(few), plain_bytes(few))]
    estimate = FOOTER_BYTES + expected(IncomingRows("a", many.num_rows, plain_bytes(many)), files)
    assert estimate == pytest.approx(encoded(many), rel=0.1)
