"""Ways of writing a DataFrame, one file each: Tallymark's and those that it is measured beside.

Each is used as its documentation says, with the same codec and level. ``writer`` is what they have in common.
"""

from tallymark.bench.peers.writers.committers import FileOutputCommitter
from tallymark.bench.peers.writers.delta import Delta
from tallymark.bench.peers.writers.hudi import Hudi
from tallymark.bench.peers.writers.ours import Ours
from tallymark.bench.peers.writers.s3a import S3ACommitter
from tallymark.bench.peers.writers.writer import Writer

__all__ = ["Writer", "writer", "NAMES"]

_WRITERS: dict[str, Writer] = {
    "ours": Ours(),
    "ours-direct": Ours("direct"),
    "v1": FileOutputCommitter(1),
    "v2": FileOutputCommitter(2),
    "magic": S3ACommitter("magic"),
    "staging": S3ACommitter("staging"),
    "delta": Delta(),
    "hudi": Hudi("TIMELINE_SERVER_BASED"),
    "hudi-bloom": Hudi("TIMELINE_SERVER_BASED", "BLOOM"),
    "hudi-direct": Hudi("DIRECT"),
}

NAMES = tuple(_WRITERS)
"""Ours first."""


def writer(name: str) -> Writer:
    return _WRITERS[name]
