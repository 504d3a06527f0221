"""The reservation of an instant in bytes, and the numbers under which writers register."""

import msgpack
import pytest

from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.registration import UNNUMBERED, Registrations, registration_number, registration_path
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.engine.timeline.entries import instant

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


def test_it_comes_back_as_it_went():
    assert Reservation.decode(MINE.encode(), source=MINE.path) == MINE


def test_it_lies_at_the_name_of_its_instant():
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
    history = History()
    for place, (number, unfinished) in enumerate(entries):
        instant = f"202611210000000{place:02}"
        history.apply(
            LogEntry(
                kind="commit", instant=instant, nonce=instant, base=0, operation="append", registration=number,
                unfinished=unfinished,
            )
        )  # fmt: skip
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
