import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends.errors import Unavailable
from tallymark.engine.errors import InvalidRequest, Sealed, ServiceUnavailable
from tallymark.engine.tasks.file_name import instant_of
from tallymark.engine.tasks.task_writer import TaskWriter, write_task
from tests.engine.tasks.scene import (
    FLIGHTS,
    INSTANT,
    STAGING,
    AtOnce,
    Markers,
    WatchedBackend,
    flights,
    footer,
    memory,
    schema_of,
    stored,
    tables,
    ticket,
    write,
)
from tests.support.faulty import FaultyBackend, lost_answer, lost_request

NOISE = schema_of(month=pa.int32(), noise=pa.binary())


def noise(month, rows, *, row_bytes=100, seed=1):
    """Rows that no codec makes smaller."""
    draw = random.Random(seed)
    return pa.record_batch({"month": [month] * rows, "noise": [draw.randbytes(row_bytes) for _ in range(rows)]}).cast(
        NOISE
    )


def numbers(backend, report):
    """The flights in each partition, in the order of files and rows."""
    found: dict[str, list[object]] = {}
    for partition, table in tables(backend, report):
        found.setdefault(partition, []).extend(table.column("flight").to_pylist())
    return found


def test_the_report_names_what_lies_in_storage_and_nothing_else_does(backend):
    report = write(ticket(FLIGHTS, "month"), [flights(range(20), months=5)], backend, task=3, attempt=2, stage=1)
    assert {file.path: file.bytes for file in report.files} == {p: len(data) for p, data in stored(backend).items()}
    assert (report.instant, report.task, report.attempt, report.unused) == (INSTANT, 3, 2, ())
    assert all("_3-1-2_" in file.name and instant_of(file.name) == INSTANT for file in report.files)
    assert len({file.file_id for file in report.files}) == len(report.files) == 5


def test_a_table_without_partitions_has_its_files_at_the_root(backend):
    report = write(ticket(), [flights(range(5)), flights(range(5, 9))], backend)
    assert [(file.partition, file.path) for file in report.files] == [("", report.files[0].name)]
    assert numbers(backend, report) == {"": list(range(9))}


def test_files_are_rolled_at_the_limit_and_each_lies_within_one_row_group_of_it(backend):
    batches = [noise(1, 50, seed=seed) for seed in range(20)]
    job = ticket(NOISE, "month", max_file_bytes=20_000, row_group_bytes=5_000, compression="none")
    report = write(job, batches, backend)
    sizes = [file.bytes for file in report.files]
    assert len(sizes) >= 4
    assert all(20_000 <= size <= 27_000 for size in sizes[:-1])
    assert sizes[-1] <= 27_000
    written = [row for _, table in tables(backend, report) for row in table.column("noise").to_pylist()]
    assert written == [row for batch in batches for row in batch.column("noise").to_pylist()]


def test_no_file_is_begun_before_its_marker_was_acked(backend):
    markers = Markers(acks=False)
    watched = WatchedBackend(backend, markers)
    job = ticket(NOISE, "month", max_file_bytes=5_000, row_group_bytes=2_000, buffer_bytes=8_000)
    moments = iter(range(10_000))

    def monotonic():
        markers.ack_all()  # the first chance for acks is when the writer begins to wait for one
        return float(next(moments))

    batches = [noise(seed % 4, 20, seed=seed) for seed in range(40)]
    report = write(job, batches, watched, markers, monotonic=monotonic)
    assert sorted(watched.begun) == sorted(file.path for file in report.files)
    assert sorted(markers.asked) == sorted([*watched.begun, *report.unused])
    assert report.marker_wait_s > 0


def test_the_new_partitions_of_a_batch_are_asked_in_one_request_at_once():
    markers = Markers(acks=False)
    writer = TaskWriter(ticket(FLIGHTS, "month"), memory(has_staging=False), markers, task=0)
    writer.write(flights(range(10), months=2))
    writer.write(flights(range(10), months=2))
    writer.write(flights(range(10), months=5))
    asked = [[path.partition("/")[0] for path in request] for request in markers.requests]
    assert asked == [["month=1", "month=2"], ["month=3", "month=4", "month=5"]]


@pytest.mark.parametrize(("batches", "files"), [(3, 1), (4, 2)])
def test_a_name_is_asked_when_a_file_has_passed_half_its_limit_and_taken_when_that_is_rolled(batches, files):
    markers, storage = Markers(), memory(has_staging=False)
    job = ticket(NOISE, "month", max_file_bytes=20_000, row_group_bytes=6_000, compression="none")
    writer = TaskWriter(job, storage, markers, task=0)
    requests = []
    for seed in range(batches):  # 6 kB each; the file passes 10 kB with the second
        writer.write(noise(1, 60, seed=seed))
        requests.append(len(markers.requests))
    assert requests[:3] == [1, 2, 2]
    report = writer.finish()
    assert [file.path for file in report.files] == markers.asked[:files]
    assert report.unused == tuple(markers.asked[files:])
    assert len(markers.asked) == 2


def test_the_last_rows_of_a_task_ask_for_no_name_that_nobody_needs():
    markers = Markers()
    report = write(ticket(NOISE, "month", max_file_bytes=10_000), [noise(1, 70)], memory(has_staging=False), markers)
    assert (len(markers.asked), report.unused) == (1, ())


def test_a_slow_marker_source_does_not_stop_buffering():
    markers = Markers(acks=False)
    job = ticket(FLIGHTS, "month")
    storage = WatchedBackend(memory(has_staging=True), markers)
    consumed = []

    def batches():
        for number in range(20):
            consumed.append(number)
            yield flights(range(100), months=6)
        markers.ack_all()

    report = write(job, batches(), storage, markers)
    assert consumed == list(range(20))
    assert (report.rows, report.marker_wait_s) == (2000, 0.0)


def test_the_time_stood_still_and_the_time_in_all_are_reported():
    markers = Markers(acks=False)
    moments = iter([100.0, 101.0, 104.5, 110.0])

    def monotonic():
        markers.ack_all()
        return next(moments)

    report = write(ticket(), [flights(range(3))], memory(has_staging=False), markers, monotonic=monotonic)
    assert (report.marker_wait_s, report.seconds) == (3.5, 10.0)


def test_at_most_so_many_files_are_open_and_the_longest_waiting_is_finished_first():
    storage = FaultyBackend(memory(has_staging=True))
    job = ticket(NOISE, "month", open_file_count=2, row_group_bytes=1_000)
    batches = [noise(month, 20, seed=seed) for seed, month in enumerate((1, 2, 1, 3, 1, 2))]
    report = write(job, batches, storage, executor=AtOnce())
    # 3 drives out 2, since 1 had rows again; 2, which gets another file, drives out 3.
    assert [file.partition for file in report.files] == ["month=2", "month=3", "month=1", "month=2"]
    calls = [call.verb for call in storage.calls if call.verb in ("new_file", "publish")]
    opened = 0
    for verb in calls:
        opened += 1 if verb == "new_file" else -1
        assert 0 <= opened <= 2
    assert opened == 0


def test_what_waits_in_memory_is_bounded():
    job = ticket(NOISE, "month", buffer_bytes=40_000, row_group_bytes=30_000)
    writer = TaskWriter(job, memory(has_staging=False), Markers(), task=0)
    batch_bytes = noise(0, 20).nbytes
    for seed in range(100):
        writer.write(noise(seed % 9, 20, seed=seed))
        assert writer._buffer.bytes <= 40_000 + batch_bytes
    assert sum(file.rows for file in writer.finish().files) == 2000


months = st.lists(st.lists(st.none() | st.integers(-2, 3), max_size=30), max_size=6)


@settings(deadline=None)
@given(months, st.integers(200, 3000), st.integers(1, 3), st.booleans(), st.sampled_from(["zstd", "gzip", "none"]))
def test_every_row_is_written_once_whatever_the_limits(batches, limit, open_files, has_staging, codec):
    storage, markers = memory(has_staging=has_staging), Markers()
    job = ticket(
        FLIGHTS,
        "month",
        max_file_bytes=limit,
        row_group_bytes=limit // 2,
        buffer_bytes=limit * 2,
        open_file_count=open_files,
        compression=codec,
    )
    rows = [[{"flight": n, "origin": "JFK", "month": month} for n, month in enumerate(batch)] for batch in batches]
    report = write(
        job,
        [pa.RecordBatch.from_pylist(batch, schema=FLIGHTS) for batch in rows],
        WatchedBackend(storage, markers),
        markers,
    )
    expected: dict[str, list[int]] = {}
    for row in (row for batch in rows for row in batch):
        month = "__HIVE_DEFAULT_PARTITION__" if row["month"] is None else row["month"]
        expected.setdefault(f"month={month}", []).append(row["flight"])
    assert numbers(storage, report) == expected
    assert report.rows == sum(map(len, batches))
    assert set(stored(storage)) == {file.path for file in report.files}
    assert all(file.rows for file in report.files)
    assert set(markers.asked) == {*stored(storage), *report.unused}
    assert bool(markers.requests) == bool(report.rows)


def broken(batches):
    yield from batches
    raise RuntimeError("the source broke")


def test_a_failure_in_mid_stream_comes_through_and_leaves_nothing_in_staging(backend):
    markers = Markers()
    job = ticket(NOISE, "month", max_file_bytes=4_000, row_group_bytes=1_000)
    batches = [noise(month, 25, seed=month) for month in range(6)] + [noise(0, 25)] * 2
    with pytest.raises(RuntimeError, match="the source broke"):
        write(job, broken(batches), backend, markers)
    left = stored(backend)
    assert left  # a file was full before: the job finds it through its marker
    assert set(left) <= set(markers.asked)
    assert not [path for path in left if path.startswith(STAGING)]


def test_a_batch_of_another_schema_stops_the_task_and_leaves_nothing(backend):
    batches = [flights(range(9), months=3), flights([1]).drop_columns("origin")]
    with pytest.raises(InvalidRequest, match=r"column 'origin' .* is missing"):
        write(ticket(FLIGHTS, "month", row_group_bytes=1), batches, backend)
    assert stored(backend) == {}


def test_a_partition_value_that_no_path_can_carry_stops_the_task():
    storage, markers = memory(has_staging=False), Markers()
    with pytest.raises(InvalidRequest, match="column 'origin'"):
        write(ticket(FLIGHTS, "origin"), [pa.record_batch([[1], ["x" * 300], [1]], schema=FLIGHTS)], storage, markers)
    assert (stored(storage), markers.requests) == ({}, [])


def test_a_marker_that_is_refused_stops_the_task_before_any_byte():
    markers, storage = Markers(acks=False), memory(has_staging=True)

    def batches():
        yield flights([1])
        markers.refuse_all(Sealed("over"))

    with pytest.raises(Sealed, match="over"):
        write(ticket(), batches(), WatchedBackend(storage, markers), markers)
    assert stored(storage) == {}


def test_a_marker_that_never_comes_stops_the_task_within_the_bound(storage):
    with pytest.raises(ServiceUnavailable, match=r"marker of \S+\.parquet was not acked .* 0.001 s \(marker_wait_s\)"):
        write(ticket(marker_wait_s=0.001), [flights([1])], storage, Markers(acks=False))
    assert stored(storage) == {}


def test_a_file_whose_put_is_never_answered_fails_the_attempt():
    storage = FaultyBackend(memory(has_staging=False), lost_request("publish", "month=2/*"))
    markers = Markers()
    with pytest.raises(Unavailable):
        write(ticket(FLIGHTS, "month"), [flights(range(9), months=3)], storage, markers)
    assert sorted(path.partition("/")[0] for path in stored(storage)) == ["month=1", "month=3"]
    assert set(stored(storage)) < set(markers.asked)


@pytest.mark.parametrize("fault", [lost_request, lost_answer])
def test_a_file_whose_put_is_unclear_is_reported_under_the_name_that_is_known_to_be_there(fault):
    storage = FaultyBackend(memory(has_staging=False), fault("publish", "month=2/*", nth=1))
    markers = Markers()
    watched: Any = WatchedBackend(storage, markers)
    job = ticket(FLIGHTS, "month", max_file_bytes=1, row_group_bytes=1)
    report = write(job, [flights(range(9), months=3), flights(range(4), months=2)], watched, markers)
    unclear = next(path for path in storage.paths("publish") if path.startswith("month=2/"))
    reported = {file.path for file in report.files}
    assert unclear not in reported | set(report.unused)
    assert reported == set(storage.paths("publish")) - {unclear}
    assert set(storage.paths("publish")) <= markers.acked
    assert sorted(row["flight"] for _, rows in tables(storage, report) for row in rows.to_pylist()) == sorted(
        [*range(9), *range(4)]
    )


def test_a_row_group_holds_what_was_gathered_over_many_batches(storage):
    report = write(ticket(FLIGHTS, "month"), [flights(range(10), months=2) for _ in range(30)], storage)
    assert [footer(storage, file.path).num_row_groups for file in report.files] == [1, 1]


def test_a_task_that_cannot_share_the_memory_of_its_job_says_so_instead_of_losing_rows():
    with pytest.raises(InvalidRequest, match="'memory:', lives in the memory of the process that opened it"):
        write_task(ticket(), [flights(range(3))], task=0)
