"""Hash chain of a log, one hash per position, which identifies the log. Sans-I/O.

    hash(0) = sha256(b"")
    hash(n) = sha256(hash(n - 1) + msgpack([n, instant, kind, nonce]))

Two logs that agree in the hash of a position have the same entries up to there, void ones included, in the same order:
a nonce is random, and drawn for one entry.
"""

from hashlib import sha256

import msgpack

from tallymark.engine.timeline.entry import LogEntry

NO_ENTRY_HASH = sha256(b"").digest()
"""The hash of position 0."""


def next_hash(before: bytes, position: int, entry: LogEntry) -> bytes:
    """Return the hash of a position from its entry and the hash of the position before."""
    packed: bytes = msgpack.packb([position, entry.instant, entry.kind, entry.nonce])
    return sha256(before + packed).digest()
