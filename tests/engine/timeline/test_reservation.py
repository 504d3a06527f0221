"""The start of an instant and its seal: reservations in bytes, registration numbers, open for direct markers or not."""

import msgpack
import pytest

from tallymark.backends.errors import Unavailable
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CorruptObject, Sealed
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.registration import UNNUMBERED, Registrations, registration_number, registration_path
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.seal import check_unsealed, seal_path
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.engine.timeline.entries import commit, history_of, instant, rollback, win
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


def test_it_is_read_as_it_was_written_at_the_name_of_its_instant():
    assert Reservation.decode(MINE.encode(), source=MINE.path) == MINE
    assert MINE.path == f".hoodie/.tallymark/open/{instant(1)}"


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
        said(registration=-1),
        said(registration=True),
        said(registration=3, unfinished=["1"]),
        said(registration=0, unfinished=[1]),
        said(writer={**MINE.writer.fields(), "pid": 1 << 40}),
        MINE.encode()[:-3],
        MINE.encode() + b"more",
    ],
)
def test_what_is_no_reservation_is_refused_by_the_name_of_its_object(data):
    with pytest.raises(CorruptObject, match="open/17 is not a reservation"):
        Reservation.decode(data, source="open/17")


def told(*entries: tuple[int, tuple[int, ...]]) -> Registrations:
    history = history_of(
        commit(place, registration=number, unfinished=unfinished) for place, (number, unfinished) in enumerate(entries)
    )
    assert History(history.as_base()).registration == history.registration
    return history.registration


@pytest.mark.parametrize(
    ("entries", "known"),
    [
        ([], Registrations(0, (UNNUMBERED,))),
        ([(0, ())], Registrations(0, (UNNUMBERED,))),
        ([(1, ())], Registrations(1, ())),
        ([(1, (UNNUMBERED,))], Registrations(1, (UNNUMBERED,))),
        ([(1, ()), (2, (1,)), (3, ())], Registrations(3, ())),
        ([(3, (2,)), (2, ()), (1, ())], Registrations(3, (2,))),
        ([(3, (2,)), (0, ())], Registrations(3, (UNNUMBERED, 2))),
        ([(3, (2,)), (0, ()), (4, ())], Registrations(4, ())),
    ],
)
def test_the_greatest_number_counts_and_what_was_unfinished_then(entries, known):
    assert told(*entries) == known


def test_an_entry_without_a_number_makes_its_like_doubtful_and_no_number():
    assert told((3, (2,)), (0, ())).doubtful == (2, 3)
    assert told((0, ())).doubtful == ()


def test_a_number_is_told_by_its_path():
    assert [registration_number(registration_path(number)) for number in (1, 12, 10**19)] == [1, 12, 10**19]


@on_both_loops
async def test_a_sealed_instant_is_closed_and_one_without_seal_or_entry_open():
    storage = MemoryBackend()
    await win(storage, commit(1), rollback(2))
    await check_unsealed(storage, instant(3), base=0)
    await storage.put(seal_path(instant(3)), b"")
    with pytest.raises(Sealed, match="is being committed or rolled back"):
        await check_unsealed(storage, instant(3), base=0)
    await check_unsealed(storage, instant(4), base=0)


@pytest.mark.parametrize("entry", [commit(3), rollback(3)], ids=lambda entry: entry.kind)
@on_both_loops
async def test_an_instant_that_the_log_has_ended_is_closed_though_its_seal_has_gone(entry):
    storage = MemoryBackend()
    await win(storage, commit(1), commit(2), entry, commit(4))
    with pytest.raises(Sealed, match=f"its {entry.kind} stands at position 3"):
        await check_unsealed(storage, instant(3), base=1)


@on_both_loops
async def test_the_seal_is_read_before_the_log_and_silence_permits_nothing():
    """A seal is deleted only after the entry is in the log: in the other order both could be missed."""
    storage = FaultyBackend(MemoryBackend(), lost_request("get", "*/log/*"))
    with pytest.raises(Unavailable):
        await check_unsealed(storage, instant(3), base=0)
    assert storage.paths("get") == [seal_path(instant(3)), ".hoodie/.tallymark/log/00000000000000000001"]
