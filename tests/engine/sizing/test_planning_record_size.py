"""Hudi's guess of a record's size: of the newest large commit among the last five."""

from tallymark.engine.sizing import CommitSize
from tallymark.engine.sizing.planning import DEFAULT_RECORD_BYTES, average_record_bytes

LIMIT = 100_000


def guessed(*commits: CommitSize) -> int:
    return average_record_bytes(commits, small_file_bytes=LIMIT)


def test_it_is_rounded_up() -> None:
    assert guessed(CommitSize(rows=3, bytes=200_000)) == 66_667


def test_the_newest_commit_counts_that_is_larger_than_the_limit() -> None:
    assert guessed(CommitSize(10, LIMIT), CommitSize(0, 999_999), CommitSize(10, LIMIT + 10)) == 10_001


def test_five_commits_are_looked_at() -> None:
    small, large = CommitSize(10, 10), CommitSize(10, 1_000_000)
    assert guessed(*[small] * 4, large) == 100_000
    assert guessed(*[small] * 5, large) == DEFAULT_RECORD_BYTES
    assert guessed() == DEFAULT_RECORD_BYTES
