"""Which writes exclude each other."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import ConflictError
from tallymark.engine.timeline.conflict import beyond_compactions, check_conflicts
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.scope import Scope
from tests.engine.timeline.entries import ALL, below, clean, commit, data_file, instant, partitions, rollback

OLD = data_file("month=1", 1)


def excludes(mine, *theirs) -> bool:
    try:
        check_conflicts(mine, list(enumerate(theirs, start=8)))
    except ConflictError:
        return True
    return False


def conflict(mine, *theirs) -> ConflictError:
    with pytest.raises(ConflictError) as caught:
        check_conflicts(mine, list(enumerate(theirs, start=8)))
    return caught.value


def test_two_overwrites_of_one_partition_conflict_and_the_error_names_partition_and_winner():
    error = conflict(
        commit(9, scope=partitions("month=1", "month=2")), commit(2, scope=partitions("month=2", "month=3"))
    )
    assert (error.partition, error.winner) == ("month=2", instant(2))
    assert "'month=2'" in str(error)
    assert instant(2) in str(error)
    assert "position 8" in str(error)


def test_an_overwrite_of_a_file_that_an_append_has_filled_since_conflicts():
    filled = commit(2, added=(replace(data_file("month=1", 2), rows=2),), removed=(OLD,))
    error = conflict(commit(9, scope=partitions("month=1"), removed=(OLD,)), filled)
    assert f"instant {instant(2)} has added rows to a file of that since" in str(error)
    assert "overwritten since" not in str(error)


WHOLE = data_file("", 1)


MONTH = partitions("month=1")
BELOW = [
    (below("year=2013"), below("year=2013"), "all below 'year=2013'"),
    (below("year=2013"), below("year=2013/month=1"), "all below 'year=2013/month=1'"),
    (below("year=2013"), partitions("year=2013/month=1"), "partition 'year=2013/month=1'"),
    (below("year=2013"), partitions("year=2013"), "partition 'year=2013'"),
    (below("year=2013"), ALL, "all below 'year=2013'"),
    (partitions("month=4", "month=3"), ALL, "partition 'month=3'"),
]


@pytest.mark.parametrize(
    ("mine", "theirs", "named"),
    [
        (commit(9, scope=ALL), commit(2, scope=ALL), "the whole table"),
        (commit(9, scope=ALL, removed=(WHOLE,)), commit(2, removed=(WHOLE,)), "the whole table"),
        (commit(9, scope=ALL, removed=(OLD,)), commit(2, scope=MONTH, removed=(OLD,)), "partition 'month=1'"),
        *((commit(9, scope=one), commit(2, scope=other), named) for one, other, named in BELOW),
        *((commit(9, scope=other), commit(2, scope=one), named) for one, other, named in BELOW),
    ],
)
def test_overwrites_of_everything_or_of_a_prefix_conflict_with_those_above_and_below_and_name_what_they_share(
    mine, theirs, named
):
    error = conflict(mine, theirs)
    assert f"wants to overwrite {named}, " in str(error)
    assert f"instant {instant(2)} " in str(error)
    assert error.partition == (named.split("'")[1] if "'" in named else None)


def test_the_first_entry_in_conflict_is_named():
    assert conflict(commit(9, scope=ALL), commit(2), commit(3, scope=ALL), commit(4, scope=ALL)).winner == instant(3)


@pytest.mark.parametrize("theirs", [rollback(2), clean(2, horizon=1)], ids=lambda entry: entry.kind)
def test_a_rollback_and_a_clean_conflict_with_nobody(theirs):
    assert not excludes(commit(9, scope=ALL, removed=(OLD,)), theirs)


def test_a_scope_contains_its_partitions_and_all_below_its_prefixes_and_none_that_only_look_alike():
    assert Scope(is_all=True).holds("p=9")
    assert Scope(partitions=frozenset({"p=1"})).holds("p=1")
    assert not Scope(partitions=frozenset({"p=1"})).holds("p=10")
    assert Scope(prefixes=frozenset({"p=1"})).holds("p=1/q=2")
    assert not Scope(prefixes=frozenset({"p=1"})).holds("p=10/q=2")
    assert not Scope().holds("")


LEAVES = ["a/x", "a/xy", "ab/x", "ab/y", "b/x"]
PATHS = st.frozensets(st.sampled_from(LEAVES))
PREFIXES = st.frozensets(st.sampled_from(["a", "ab", "b", *LEAVES]))
SCOPES = st.one_of(st.none(), st.just(ALL), st.builds(Scope, st.just(False), PATHS, PREFIXES))


@given(SCOPES, SCOPES)
def test_scopes_conflict_just_where_a_partition_is_in_both(one, other):
    shares = one is not None and other is not None and any(one.holds(leaf) and other.holds(leaf) for leaf in LEAVES)
    if ALL in (one, other) and one and other:
        shares = True  # they share a partition that nobody has made yet
    assert excludes(commit(9, scope=one), commit(2, scope=other)) == shares


NEW = data_file("month=1", 5)
"""A file that holds a row that no write of these tests has read."""


def merged(number: int, *old: DataFile) -> LogEntry:
    """A compaction of these files of month 1."""
    new = replace(data_file("month=1", number), rows=sum(file.rows for file in old))
    return commit(number, added=(new,), removed=old)


def followed(mine: LogEntry, *theirs: LogEntry) -> list[DataFile] | None:
    found = beyond_compactions(mine, list(enumerate(theirs, start=8)))
    return None if found is None else list(found.removed)


def test_an_overwrite_follows_the_files_that_it_replaces_through_compactions():
    mine = commit(9, scope=MONTH, removed=(OLD, NEW))
    first = merged(2, OLD, NEW)
    [after] = first.added
    assert followed(mine, first) == [after]
    second = merged(3, after)
    assert followed(mine, commit(6), first, second) == list(second.added)
    found = beyond_compactions(mine, [(8, first)])
    assert found is not None
    assert not excludes(found, first)


def test_an_overwrite_does_not_follow_files_that_were_merged_with_rows_which_it_has_not_read():
    assert followed(commit(9, scope=MONTH, removed=(OLD,)), merged(2, OLD, NEW)) is None


def test_only_an_overwrite_follows_and_only_compactions():
    theirs = merged(2, OLD)
    assert followed(commit(9, removed=(OLD,)), theirs) is None
    assert followed(commit(9, scope=MONTH, removed=(NEW,)), theirs) is None
    assert followed(commit(9, scope=MONTH, removed=(OLD,)), commit(2, scope=MONTH, removed=(OLD,))) is None
    grown = replace(theirs, added=(replace(theirs.added[0], rows=7),))
    assert followed(commit(9, scope=MONTH, removed=(OLD,)), grown) is None


def test_a_conflict_with_a_compaction_and_of_one_says_so():
    theirs = merged(2, OLD, NEW)
    assert "has merged files of that since" in str(conflict(commit(9, scope=MONTH, removed=(OLD,)), theirs))
    assert "wants to rewrite files of partition 'month=1'" in str(conflict(merged(9, OLD, NEW), theirs))
