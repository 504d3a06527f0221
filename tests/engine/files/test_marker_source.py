import threading
from dataclasses import replace

import anyio
import pytest

from tallymark.backends.errors import NotPermitted
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import FlushFailed, InvalidRequest, Sealed
from tallymark.engine.files.marker_source import marker_source
from tallymark.engine.files.task_writer import write_task
from tallymark.engine.service.address import ServiceAddress
from tallymark.engine.service.client import MarkerClient
from tallymark.engine.timeline.seal import seal_path
from tests.engine.files.scene import FLIGHTS, INSTANT, flights, local, memory, stored, ticket
from tests.support.faulty import FaultyBackend, refused
from tests.support.loops import on_both_loops

MARKERS = f".hoodie/.temp/{INSTANT}/"


def markers_in(storage):
    return {path for path in stored(storage) if path.startswith(MARKERS)}


def test_a_direct_marker_is_in_storage_when_its_ack_comes():
    storage = memory(has_staging=False)
    with marker_source(ticket(), storage) as source:
        source.ask(["a=1/f.parquet", "a=2/g.parquet"]).result(10)
        expected = {f"{MARKERS}a=1/f.parquet.marker.CREATE", f"{MARKERS}a=2/g.parquet.marker.CREATE"}
        assert markers_in(storage) == expected


def test_the_event_loop_of_direct_markers_ends_with_the_task():
    before = set(threading.enumerate())
    with marker_source(ticket(), memory(has_staging=False)) as source:
        source.ask(["f.parquet"])
    with pytest.raises(RuntimeError, match="in the task"), marker_source(ticket(), memory(has_staging=False)):
        raise RuntimeError("in the task")
    assert not [thread for thread in set(threading.enumerate()) - before if "portal" in thread.name.lower()]


def test_markers_under_way_land_before_the_task_is_over():
    storage = memory(has_staging=False)
    with marker_source(ticket(), storage) as source:
        for number in range(50):
            source.ask([f"f{number}.parquet"])
    assert len(markers_in(storage)) == 50


def test_a_sealed_instant_refuses_direct_markers():
    storage = memory(has_staging=False)
    anyio.run(storage.put, seal_path(INSTANT), b"")
    with marker_source(ticket(), storage) as source, pytest.raises(Sealed, match=INSTANT):
        source.ask(["f.parquet"]).result(10)


def test_a_refusal_of_storage_and_a_bad_path_come_through():
    storage = FaultyBackend(memory(has_staging=False), refused("put_new", error=NotPermitted("read-only")))
    storage.add(refused("put", error=NotPermitted("read-only")))
    with marker_source(ticket(), storage) as source:
        with pytest.raises((NotPermitted, FlushFailed)):
            source.ask(["f.parquet"]).result(10)
        with pytest.raises(InvalidRequest):
            source.ask(["../f.parquet"]).result(10)


def test_a_ticket_with_a_service_is_served_by_the_client_of_this_process():
    job = replace(ticket(), marker_kind="batched", service=ServiceAddress("127.0.0.1", 1, b"k" * 32))
    with marker_source(job, memory(has_staging=False)) as source:
        assert isinstance(source, MarkerClient)
        with marker_source(job, memory(has_staging=False)) as again:
            assert again is source


@pytest.mark.parametrize("has_staging", [True, False])
def test_write_task_marks_each_file_and_reports_it(has_staging):
    storage = memory(has_staging=has_staging)
    report = write_task(ticket(FLIGHTS, "month"), [flights(range(30), months=3)], task=0, backend=storage)
    assert report.rows == 30
    paths = {file.path for file in report.files}
    assert set(stored(storage)) == paths | {f"{MARKERS}{path}.marker.CREATE" for path in paths}


def test_write_task_opens_the_storage_that_the_ticket_names(tmp_path):
    storage = local(tmp_path)
    job = replace(ticket(FLIGHTS, "month"), url=storage.url)
    report = write_task(job, iter([flights(range(4), months=2)]), task=0)
    assert sorted(path for path in stored(storage) if not path.startswith(".hoodie")) == sorted(
        file.path for file in report.files
    )


def test_a_task_that_raises_leaves_only_marked_files():
    storage = memory(has_staging=False)
    job = ticket(FLIGHTS, "month", row_group_bytes=1, max_file_bytes=1)
    with pytest.raises(InvalidRequest):
        write_task(job, [flights([1, 2]), flights([3]).drop_columns("month")], task=0, backend=storage)
    marked = {path.removeprefix(MARKERS).removesuffix(".marker.CREATE") for path in markers_in(storage)}
    files = set(stored(storage)) - markers_in(storage)
    assert files
    assert files <= marked


@on_both_loops
async def test_a_task_on_an_event_loop_is_refused_at_once_and_told_where_to_go():
    with pytest.raises(InvalidRequest, match=r"this thread runs an event loop.*to_thread"):
        write_task(ticket(FLIGHTS), [flights(range(3))], task=0, backend=MemoryBackend())


@pytest.mark.parametrize(("name", "value"), [("task", -1), ("attempt", -1), ("stage", None)])
def test_a_number_that_no_file_name_takes_is_refused(name, value):
    numbers = {"task": 0, name: value}
    with pytest.raises(InvalidRequest, match=f"{name}={value}: give a whole number"):
        write_task(ticket(FLIGHTS), [flights(range(3))], **numbers)
