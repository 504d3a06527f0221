"""What writers and readers leave of themselves: reservations of instants, and readers' leases."""

from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.reader_lease import Reader
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity

SOMEBODY = WriterIdentity(host="h", boot_id="b", pid_namespace=None, pid=(1 << 22) - 1, started="12")
HERE = WriterIdentity(host="h", boot_id="b", pid_namespace="p", pid=1, started="1")
OPEN = Reservation(
    instant="20260102030405006",
    nonce="n",
    writer=SOMEBODY,
    marker_kind="batched",
    operation="append",
    expiry_s=120.0,
    base=3,
)
READER = Reader(nonce="n", position=7, process=SOMEBODY, expiry_s=60.0)


def seeds() -> list[bytes]:
    return [OPEN.encode(), READER.encode()]


def target(data: bytes) -> bool:
    """Of what was read, everybody can ask whether its process is gone."""
    return is_reservation(data) | is_reader(data)


def is_reservation(data: bytes) -> bool:
    try:
        reservation = Reservation.decode(data, source="here")
    except CorruptObject:
        return False
    assert Reservation.decode(reservation.encode(), source="here") == reservation
    reservation.writer.is_gone(seen_from=HERE)
    return True


def is_reader(data: bytes) -> bool:
    try:
        reader = Reader.decode(data, source="here")
    except CorruptObject:
        return False
    assert Reader.decode(reader.encode(), source="here") == reader
    reader.is_dead(1.0, seen_from=HERE)
    return True
