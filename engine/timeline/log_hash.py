"""Hash chain of a log, one hash per position, which identifies the log. Sans-I/O.

    hash(0) = sha256(id of the table)
    hash(n) = sha256(hash(n - 1) + msgpack([n, instant, kind, nonce]))

Two logs that agree in the hash of a position have the same entries up to there, void ones included, in the same order:
a nonce is random, and drawn for one entry. Each entry carries the hash of the position before, as its writer has read
it: an entry that carries another one was written for another log.
"""

from hashlib import sha256

import msgpack

from tallymark.engine.timeline.entry import LogEntry


def first_hash(table: str) -> bytes:
    """Return the hash of position 0 of the table with this id."""
    return sha256(table.encode()).digest()


def next_hash(before: bytes, position: int, entry: LogEntry) -> bytes:
    """Return the hash of a position from its entry and the hash of the position before."""
    packed: bytes = msgpack.packb([position, entry.instant, entry.kind, entry.nonce])
    return sha256(before + packed).digest()
