"""The reservation of an instant: ``.hoodie/.tallymark/open/<T>``, put if absent before anything else is promised.

It exists until everything that its writer left has been dealt with; a table at rest has none.
"""

import dataclasses
from dataclasses import dataclass
from typing import get_args

import msgpack

from tallymark.engine.errors import CorruptObject
from tallymark.engine.packed import unpack
from tallymark.engine.settings import MarkerKind
from tallymark.engine.timeline.writer_identity import WriterIdentity

OPEN_FOLDER = ".hoodie/.tallymark/open"
HEARTBEAT_FOLDER = ".hoodie/.tallymark/beat"

UNKNOWN_OPERATION = "unknown"
"""Of an instant whose reservation cannot be read: it may be any operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The writer of an instant, and how its markers are kept. Only the winner of the put writes this content."""

    instant: str
    nonce: str
    writer: WriterIdentity
    marker_kind: MarkerKind
    operation: str
    expiry_s: float
    """Duration of the writer's lease: until a heartbeat is this old, the writer relies on not being rolled back."""
    base: int = 0
    """The position of the checkpoint from which its writer has read the log: it may need that checkpoint, and every
    later entry, and its own. 0: it has read the log from the first entry on.
    """

    @property
    def path(self) -> str:
        return f"{OPEN_FOLDER}/{self.instant}"

    def encode(self) -> bytes:
        fields = {
            "instant": self.instant,
            "nonce": self.nonce,
            "writer": self.writer.fields(),
            "marker_kind": self.marker_kind,
            "operation": self.operation,
            "expiry_s": self.expiry_s,
            "base": self.base,
        }
        packed: bytes = msgpack.packb(fields)
        return packed

    @classmethod
    def decode(cls, data: bytes, *, source: str) -> "Reservation":
        try:
            known = {each.name for each in dataclasses.fields(cls)}
            fields = {name: value for name, value in dict(unpack(data)).items() if name in known}
            fields["writer"] = WriterIdentity.of_fields(fields["writer"])
            found = cls(**fields)
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptObject(f"{source} is not a reservation: {error!r}") from error
        if not found._is_sound():
            raise CorruptObject(f"{source} is not a reservation: a field holds what no writer puts there")
        return found

    def _is_sound(self) -> bool:
        return (
            {type(self.instant), type(self.nonce), type(self.operation)} == {str}
            and self.marker_kind in get_args(MarkerKind)
            and type(self.expiry_s) in (int, float)
            and self.expiry_s >= 0
            and type(self.base) is int
            and self.base >= 0
        )
