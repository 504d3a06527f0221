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


ROWS, PLAIN, FEW = IncomingRows("a", 100_000), IncomingRows("a", 100_000, 8 * MB), IncomingRows("a", 1000)
MEASURED = file("a", 2, rows=100_000, bytes_=MB, plain=4 * MB)
ALIKE = [each for path in "bcd" for each in partition(path, (1, 2), 10)]
DAYS = [each for day in range(100) for each in partition(f"day={day}", [day], 10 + day)]
SAMPLE = Sample(rows=10_000, plain_bytes=400_000, encoded_bytes=100_000)

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
}


@pytest.mark.parametrize(("rows", "files", "sample", "bytes_", "rel"), EVIDENCE.values(), ids=EVIDENCE)
def test_rows_are_expected_to_take_what_the_best_evidence_shows(
    rows: IncomingRows, files: list[DataFile], sample: Sample | None, bytes_: float, rel: float
) -> None:
    assert expected(rows, files, sample) == pytest.approx(bytes_, rel=rel)


def test_one_odd_commit_is_not_believed_alone() -> None:
    assert expected(ROWS, [*partition("a", range(8), 10), *partition("a", [8], 100)]) < 50 * MB


def test_rows_that_compress_less_and_less_are_followed() -> None:
    """Nothing of that shows in plain bytes: only in what files have come to."""
    size = [MB * 1.088**commit for commit in range(20)]
    errors = []
    for commit in range(4, 20):
        files = [file("a", old, rows=1000, bytes_=round(size[old]), plain=4 * MB) for old in range(commit)]
        errors.append(expected(IncomingRows("a", 1000, 4 * MB), files) / size[commit] - 1)
    assert max(map(abs, errors)) < 0.1


def test_files_that_only_vary_are_not_taken_for_a_drift() -> None:
    drawn = random.Random(3)
    errors = []
    for _ in range(200):
        files = [
            file("a", commit, rows=1000, bytes_=round(MB * drawn.lognormvariate(0, 0.1)), plain=4 * MB)
            for commit in range(8)
        ]
        errors.append(abs(expected(IncomingRows("a", 1000, 4 * MB), files) / MB - 1))
    assert sum(errors) / len(errors) < 0.06


@pytest.mark.parametrize("how", [1 / 1.09, 1.09])
def test_a_drift_is_followed_from_the_third_commit_on(how: float) -> None:
    """Of the first two it cannot be told from chance: half of it is believed."""
    files = [file("a", commit, rows=1000, bytes_=round(MB * how**commit), plain=4 * MB) for commit in range(2)]
    assert expected(IncomingRows("a", 1000, 4 * MB), files) / MB == pytest.approx(how**2, rel=0.08)


@pytest.mark.parametrize("small_first", [True, False])
def test_a_small_file_tells_nothing_of_a_drift(small_first: bool) -> None:
    """Its rows take nearly twice as much for being few, not for being later or earlier."""
    small = file("a", 1 if small_first else 2, rows=1000, bytes_=58_000, plain=32_000)
    large = file("a", 2 if small_first else 1, rows=10**6, bytes_=60 * MB, plain=60 * MB)
    assert expected(IncomingRows("a", 10**6, 60 * MB), [small, large]) == pytest.approx(60 * MB, rel=0.12)


def test_of_a_drift_that_two_commits_show_half_is_believed() -> None:
    files = [file("a", commit, rows=1000, bytes_=MB * (10 + commit), plain=40 * MB) for commit in range(2)]
    assert 11.2 * MB < expected(IncomingRows("a", 1000, 40 * MB), files) < 11.6 * MB


def test_partitions_of_one_commit_each_show_no_drift() -> None:
    files = [file(f"day={day}", day, rows=1000, bytes_=MB * (2 + day), plain=10 * MB) for day in range(2)]
    assert 2 * MB < expected(IncomingRows("day=2", 1000, 10 * MB), files) < 3 * MB


def test_what_a_sample_takes_is_not_drawn_out() -> None:
    files = [file("a", 1, rows=1000, bytes_=MB, plain=4 * MB)]
    sample = Sample(rows=10_000, plain_bytes=40 * MB, encoded_bytes=20 * MB)
    assert MB < expected(IncomingRows("b", 1000, 4 * MB), files, sample) < 2 * MB


def small_files_of_two_partitions() -> list[DataFile]:
    """Twelve a partition, of some 100 KB; the rows of ``b`` take twice as many bytes."""
    return [
        file(path, commit, rows=1000, bytes_=times * 100_000, plain=200_000)
        for commit in range(12)
        for path, times in (("a", 1), ("b", 2))
    ]


def test_where_all_files_are_small_a_sample_tells_the_level_and_they_how_partitions_differ() -> None:
    """In a large file rows come to half: of the dictionaries and footers of small ones nothing is left."""
    sample = Sample(rows=10**6, plain_bytes=200 * MB, encoded_bytes=75 * MB)  # of both partitions
    files = small_files_of_two_partitions()
    sizes = [expected(IncomingRows(path, 10**6, 200 * MB), files, sample) / MB for path in "ab"]
    assert sizes == pytest.approx([50, 100], rel=0.1)
    assert expected(IncomingRows("c", 10**6, 200 * MB), files, sample) == pytest.approx(75 * MB, rel=0.1)


def test_beside_one_large_file_a_sample_is_one_more_voice() -> None:
    sample = Sample(rows=10**6, plain_bytes=200 * MB, encoded_bytes=75 * MB)
    files = [*small_files_of_two_partitions(), file("a", 12, rows=10**5, bytes_=10 * MB, plain=20 * MB)]
    assert expected(IncomingRows("a", 10**6, 200 * MB), files, sample) == pytest.approx(100 * MB, rel=0.1)


def test_a_small_sample_tells_no_more_than_small_files() -> None:
    sample = Sample(rows=100, plain_bytes=20_000, encoded_bytes=20_000)
    estimate = expected(IncomingRows("a", 10**6, 200 * MB), small_files_of_two_partitions(), sample)
    assert estimate == pytest.approx(100 * MB, rel=0.1)


def grown(updates: FileUpdates, files: Iterable[DataFile] = ()) -> int:
    held = by_partition([updates.file, *files])
    return Estimates.of([], held, None, [updates]).bytes_with(updates) - updates.file.bytes


def test_rows_that_come_anew_and_longer_make_their_file_grow() -> None:
    """Of 1,000 rows of 4,000 plain bytes, 250 come anew; with 6,000 each it is half a million more, a quarter of that
    encoded."""
    old = file("a", 1, rows=1000, bytes_=MB, plain=4 * MB)
    assert grown(FileUpdates(old, 250, 250 * 6000)) == pytest.approx(125_000, rel=0.01)
    assert grown(FileUpdates(old, 250, 250 * 4000)) == 0
    assert grown(FileUpdates(old, 250, 250 * 2000)) == pytest.approx(-125_000, rel=0.01)
    assert grown(FileUpdates(old, 1000, 1)) == pytest.approx(-MB, abs=10)


def test_a_file_whose_rows_were_not_measured_is_expected_to_stay_as_it_is() -> None:
    measured = file("a", 1, rows=1000, bytes_=MB, plain=4 * MB)
    assert grown(FileUpdates(file("a", 1, rows=1000, bytes_=MB), 250, 10 * MB), [measured]) == 0
    assert grown(FileUpdates(measured, 250)) == 0
    assert grown(FileUpdates(DataFile("a", "f", 0, 0, 5), 250, 10 * MB), [measured]) == 0


def test_more_rows_than_a_file_has_replace_all_that_it_has() -> None:
    old = file("a", 1, rows=1000, bytes_=MB, plain=4 * MB)
    assert grown(FileUpdates(old, 2000, 8 * MB)) == pytest.approx(MB, rel=0.01)


def test_in_which_order_the_files_come_does_not_matter() -> None:
    drawn = random.Random(7)
    files = [
        DataFile(
            f"p={number % 40}",
            f"f{number}_0_{number % 9:017}.parquet",
            drawn.randint(1, 9999),
            drawn.randint(1, MB),
            drawn.randint(0, MB),
        )
        for number in range(400)
    ]
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
