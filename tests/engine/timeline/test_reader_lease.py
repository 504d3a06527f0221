"""A reader's lease: what it says, when it beats, and that it is gone for good when it was given up."""

from dataclasses import replace

import anyio
import msgpack
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CorruptObject
from tallymark.engine.settings import LeaseSettings
from tallymark.engine.timeline.reader_lease import READ_FOLDER, Reader, ReaderLease
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.support.faulty import FaultyBackend, lost_request, slow
from tests.support.loops import on_both_loops

SETTINGS = LeaseSettings(heartbeat_interval_s=10, expiry_s=120)
HERE = WriterIdentity.here()


def reader(position: int = 7, **named) -> Reader:
    return Reader(nonce="n1", position=position, process=named.pop("process", HERE), expiry_s=120.0, **named)


async def said(storage) -> list[Reader]:
    paths = [entry.path async for entry in storage.list(READ_FOLDER)]
    return [Reader.decode(await storage.get(path), source=path) for path in paths]


def changed(**changes: object) -> bytes:
    packed: bytes = msgpack.packb({**msgpack.unpackb(reader().encode()), **changes})
    return packed


LATER = changed(purpose="a query", process={**HERE.fields(), "container": "c1"})


@pytest.mark.parametrize("data", [reader().encode(), LATER], ids=["this", "a later"])
def test_the_lease_of_this_release_or_a_later_one_is_read_as_it_was_written(data):
    assert Reader.decode(data, source="r") == reader()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgpack.packb([]),
        msgpack.packb({"format": 1}),
        b"\x00",
        changed(nonce=1),
        changed(position="1"),
        changed(position=-1),
        changed(expiry_s=float("nan")),
        changed(expiry_s=None),
        changed(process={**HERE.fields(), "pid": 1 << 40}),
    ],
)
def test_what_nobody_here_has_written_is_named(data):
    with pytest.raises(CorruptObject, match=f"{READ_FOLDER}/n1 is not a reader's lease"):
        Reader.decode(data, source=f"{READ_FOLDER}/n1")


def test_another_format_is_named():
    with pytest.raises(CorruptObject, match="not a lease of format 1"):
        Reader.decode(changed(format=2), source="r")


def test_a_reader_is_dead_once_its_process_has_ended_or_its_beat_is_older_than_its_lease():
    gone = replace(HERE, started="1")
    assert not reader().is_dead(120.0, seen_from=HERE)
    assert reader().is_dead(120.1, seen_from=HERE)
    assert reader(process=gone).is_dead(0.0, seen_from=HERE)


@on_both_loops
async def test_it_records_who_reads_from_where_and_the_next_heartbeat_a_later_position():
    storage = MemoryBackend()
    lease = ReaderLease(storage, SETTINGS)
    await lease.begin(7)
    lease.move_to(9)
    (found,) = await said(storage)
    assert (found.position, found.process, found.expiry_s) == (7, HERE, 120)
    await lease.renew()
    assert [found.position for found in await said(storage)] == [9]
    with pytest.raises(AssertionError, match="never moves back"):
        lease.move_to(8)


async def test_it_beats_at_every_interval_and_a_missed_beat_does_not_end_it(caplog):
    storage = FaultyBackend(MemoryBackend(), lost_request("put", f"{READ_FOLDER}/*", nth=3))
    lease = ReaderLease(storage, SETTINGS)
    await lease.begin(1)
    with anyio.move_on_after(45):
        await lease.keep()
    assert [call.started_s for call in storage.calls if call.verb == "put"] == [0, 10, 20, 30, 40]
    assert caplog.text.count("lease.unrenewed") == 1
    assert "lease.lapsed" not in caplog.text


async def test_a_reader_whose_beat_was_later_than_its_lease_is_told(caplog):
    lease = ReaderLease(MemoryBackend(), SETTINGS)
    await lease.begin(1)
    await anyio.sleep(121)
    await lease.renew()
    assert "lease.lapsed position=1 late_s=121" in caplog.text


async def test_once_it_was_given_up_no_beat_brings_it_back():
    storage = FaultyBackend(MemoryBackend(), slow("put", 5, f"{READ_FOLDER}/*", nth=2))
    lease = ReaderLease(storage, SETTINGS)
    await lease.begin(1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lease.renew)
        await anyio.sleep(1)
        await lease.give_up()
    await lease.renew()
    assert await said(storage) == []
