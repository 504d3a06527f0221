"""The start of an instant and its seal: reservations in bytes, open for direct markers or not."""

import msgpack
import pytest

from tallymark.backends.errors import NotFound, Unavailable
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CorruptObject, Sealed
from tallymark.engine.timeline.log import LATEST_CHECKPOINT, entry_path
from tallymark.engine.timeline.reservation import OPEN_FOLDER, Reservation
from tallymark.engine.timeline.seal import check_unsealed, seal_path
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.engine.timeline.entries import commit, instant, rollback, win
from tests.support.faulty import FaultyBackend, lost_request
from tests.support.loops import on_both_loops

MINE = Reservation(
    instant=instant(1),
    nonce="n",
    writer=WriterIdentity(host="h", boot_id="b", pid_namespace=None, pid=7, started="12"),
    marker_kind="direct",
    operation="append",
    expiry_s=120.0,
)


def said(**changes: object) -> bytes:
    """What the writer has put there, but for some fields."""
    packed: bytes = msgpack.packb({**msgpack.unpackb(MINE.encode()), **changes})
    return packed


def test_that_of_this_release_or_a_later_one_is_read_as_it_was_written_at_the_name_of_its_instant():
    assert MINE.path == f".hoodie/.tallymark/open/{instant(1)}"
    for data in (MINE.encode(), said(begun=3, unfinished=[1])):
        assert Reservation.decode(data, source=MINE.path) == MINE


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgpack.packb([1]),
        msgpack.packb({"instant": "x"}),
        msgpack.packb({"writer": 3}),
        said(instant=7),
        said(nonce=None),
        said(operation=b"append"),
        said(marker_kind="other"),
        said(expiry_s="120"),
        said(expiry_s=float("nan")),
        said(expiry_s=-1.0),
        said(base=-1),
        said(base=True),
        said(writer={**MINE.writer.fields(), "pid": 1 << 40}),
        MINE.encode()[:-3],
        MINE.encode() + b"more",
    ],
)
def test_what_is_no_reservation_is_refused_by_the_name_of_its_object(data):
    with pytest.raises(CorruptObject, match="open/17 is not a reservation"):
        Reservation.decode(data, source="open/17")


async def archived() -> bool:
    return True


async def opened(storage: MemoryBackend, number: int) -> None:
    await storage.put(f"{OPEN_FOLDER}/{instant(number)}", b"")


@on_both_loops
async def test_a_sealed_instant_is_closed_and_one_without_seal_or_entry_open():
    storage = MemoryBackend()
    await win(storage, commit(1), rollback(2))
    for number in (3, 4):
        await opened(storage, number)
    await check_unsealed(storage, instant(3), base=0, is_archived=archived)
    await storage.put(seal_path(instant(3)), b"")
    with pytest.raises(Sealed, match="is being committed or rolled back"):
        await check_unsealed(storage, instant(3), base=0, is_archived=archived)
    await check_unsealed(storage, instant(4), base=0, is_archived=archived)


@on_both_loops
async def test_an_instant_without_a_reservation_is_over_though_its_entry_is_archived():
    with pytest.raises(Sealed, match="it is over"):
        await check_unsealed(MemoryBackend(), instant(3), base=0, is_archived=archived)


@pytest.mark.parametrize("base", [0, 1])
async def test_an_instant_whose_reservation_arrives_once_more_after_its_entry_was_archived_is_over(base):
    storage = MemoryBackend()
    await win(storage, commit(1), commit(2), rollback(3))
    await opened(storage, 3)
    await storage.put(LATEST_CHECKPOINT, b"")
    await storage.delete([entry_path(number) for number in (1, 2, 3)])
    with pytest.raises(Sealed, match="it is over"):
        await check_unsealed(storage, instant(3), base=base, is_archived=archived)


async def test_a_first_entry_that_arrives_with_its_checkpoint_while_the_log_is_read_ends_nothing(monkeypatch):
    storage = MemoryBackend()
    await opened(storage, 3)
    get = storage.get

    async def overtaken(path: str) -> bytes:
        if path == entry_path(1) and LATEST_CHECKPOINT not in storage._objects:
            monkeypatch.undo()
            await win(storage, commit(1))
            await storage.put(LATEST_CHECKPOINT, b"")
            raise NotFound(path)
        return await get(path)

    monkeypatch.setattr(storage, "get", overtaken)
    await check_unsealed(storage, instant(3), base=0, is_archived=archived)


@pytest.mark.parametrize("entry", [commit(3), rollback(3)], ids=lambda entry: entry.kind)
@on_both_loops
async def test_an_instant_that_the_log_has_ended_is_closed_though_its_seal_has_gone(entry):
    storage = MemoryBackend()
    await win(storage, commit(1), commit(2), entry, commit(4))
    with pytest.raises(Sealed, match=f"its {entry.kind} stands at position 3"):
        await check_unsealed(storage, instant(3), base=1, is_archived=archived)


@on_both_loops
async def test_the_seal_is_read_before_the_log_and_silence_permits_nothing():
    """A seal is deleted only after the entry is in the log: in the other order both could be missed."""
    storage = FaultyBackend(MemoryBackend(), lost_request("get", "*/log/*"))
    with pytest.raises(Unavailable):
        await check_unsealed(storage, instant(3), base=0, is_archived=archived)
    assert storage.paths("get") == [seal_path(instant(3)), ".hoodie/.tallymark/log/00000000000000000001"]
