"""What writers and readers leave of themselves: reservations of instants, and readers' leases."""

from functools import partial

from tallymark.engine.timeline.reader_lease import Reader
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.fuzz.round_trip import comes_back

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
    reservation = comes_back(data, partial(Reservation.decode, source="here"), Reservation.encode)
    reader = comes_back(data, partial(Reader.decode, source="here"), Reader.encode)
    if reservation is not None:
        reservation.writer.is_gone(seen_from=HERE)
    if reader is not None:
        reader.is_dead(1.0, seen_from=HERE)
    return reservation is not None or reader is not None
