"""The size of a record as Apache Hudi guesses it: one number for the whole table, from its last large commits."""

from collections.abc import Iterable
from itertools import islice

from tallymark.engine.sizing.profile import CommitSize

COMMITS_LOOKED_AT = 5
"""[_hoodie.record.size.estimator.max.commits]"""

DEFAULT_RECORD_BYTES = 1024
"""Where no commit is large enough. [hoodie.copyonwrite.record.size.estimate]"""

THRESHOLD = 1.0
"""Of ``small_file_bytes``: a commit that wrote no more is not believed. [hoodie.record.size.estimation.threshold]"""


def average_record_bytes(commits: Iterable[CommitSize], *, small_file_bytes: int) -> int:
    """Of the newest commit that is large enough, rounded up; ``commits`` come newest first."""
    for commit in islice(commits, COMMITS_LOOKED_AT):
        if commit.rows > 0 and commit.bytes > THRESHOLD * small_file_bytes:
            return -(-commit.bytes // commit.rows)
    return DEFAULT_RECORD_BYTES
