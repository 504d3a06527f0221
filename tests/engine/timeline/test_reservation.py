"""The reservation of an instant, in bytes."""

import msgpack
import pytest

from tallymark.engine.errors import CorruptObject
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
