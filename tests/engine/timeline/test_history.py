"""What follows from a commit log, read from its start or from a base: files, decisions, hashes."""

from dataclasses import replace
from hashlib import sha256

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history import APPENDS_KEPT, History
from tallymark.engine.timeline.instant import FLOOR
from tests.engine.timeline.entries import ALL, clean, commit, data_file, history_of, instant, partitions, rollback
from tests.engine.views.histories import PARTITIONS, log_entries
from tests.support.examples import examples


def history(*entries: LogEntry) -> History:
    return history_of(entries)


def test_the_files_at_each_position_are_those_of_a_log_that_ended_there():
    first, second, third = data_file("month=1", 1), data_file("month=1", 2), data_file("month=2", 3)
    entries = [
        commit(1, added=(first,)),
        rollback(4),
        commit(2, scope=partitions("month=1"), added=(second,), removed=(first,)),
        commit(4, added=(data_file("month=2", 4),)),
        commit(3, added=(third,)),
    ]
    read = history(*entries)
    for position in range(len(entries) + 1):
        assert read.files_at(position) == history(*entries[:position]).files_at(position)
    assert read.files_at(3) == (second,)


def test_a_second_entry_of_an_instant_is_void():
    file = data_file("", 1)
    read = history(rollback(1), commit(1, added=(file,)), commit(2))
    assert read.files_at(read.head) == ()
    assert read.decision(instant(1)) == (1, rollback(1))
    assert [position for position, _ in read.after(0)] == [1, 3]
    assert read.entry(2).kind == "commit"


def test_a_txn_is_found_where_it_was_committed_and_not_where_it_was_rolled_back_or_void():
    read = history(commit(1), commit(2, txn="etl:7"), commit(3, txn="etl:8"))
    assert read.txn_position("etl:7") == 2
    assert read.txn_position("etl:9") is None
    ended = history(rollback(1), commit(1, txn="etl:7"), replace(rollback(2), txn="etl:7"))
    assert ended.txn_position("etl:7") is None
    ended.apply(commit(3, txn="etl:7"))
    assert ended.txn_position("etl:7") == 4


def test_a_history_has_reached_its_newest_instant_and_an_empty_one_the_floor():
    assert (history().newest_instant, history().reached_instant) == (None, FLOOR)
    read = history(commit(7), commit(3))
    assert read.reached_instant == read.newest_instant == instant(7)


def test_a_partition_is_new_where_it_got_its_first_file_ever():
    first, again, other = data_file("month=1", 1), data_file("month=1", 2), data_file("month=2", 2)
    read = history(commit(1, added=(first,)), commit(2, scope=ALL, added=(again, other), removed=(first,)))
    assert read.new_partitions(1) == {"month=1": instant(1)}
    assert read.new_partitions(2) == {"month=2": instant(2)}


def replacing(number: int, *removed: int) -> LogEntry:
    """The commit of one file that replaces files of the commits named."""
    files = tuple(data_file("month=1", each) for each in removed)
    return commit(number, scope=ALL, added=(data_file("month=1", number),), removed=files)


def test_a_clean_lets_go_what_was_replaced_up_to_its_horizon_and_by_no_clean_before_it():
    read = history(replacing(1), replacing(2, 1), replacing(3, 2), clean(4, 2), replacing(5, 3), clean(6, 5))
    assert read.files_expired_by(4) == (data_file("month=1", 1),)
    assert read.files_expired_by(6) == (data_file("month=1", 2), data_file("month=1", 3))
    assert read.horizon == 5
    assert read.files_at(read.head) == (data_file("month=1", 5),)


def test_a_clean_that_is_behind_another_or_void_lets_nothing_go():
    late = (clean(4, 1), clean(5, 2), replacing(6, 2), rollback(7), clean(7, 6))
    read = history(replacing(1), replacing(2, 1), clean(3, 2), *late)
    assert (read.files_expired_by(4), read.files_expired_by(5), read.horizon) == ((), (), 2)


def test_everything_is_retained_since_the_last_position_whose_replaced_files_are_gone():
    read = history(commit(1, added=(data_file("month=1", 1),)), replacing(2, 1), commit(3), replacing(4, 2), commit(5))
    assert [read.retained_since(horizon) for horizon in range(6)] == [0, 0, 2, 2, 4, 4]


def test_each_entry_and_each_void_one_goes_into_the_hash_by_its_position_instant_kind_and_nonce():
    entries = (commit(1), rollback(2), commit(2, nonce="void"))
    read = history(*entries)
    expected = sha256(b"").digest()
    for position, entry in enumerate(entries, 1):
        assert read.hash_at(position - 1) == expected.hex()
        expected = sha256(expected + msgpack.packb([position, entry.instant, entry.kind, entry.nonce])).digest()
    assert read.hash_at(3) == expected.hex()


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_two_logs_agree_in_a_hash_just_as_far_as_they_have_the_same_entries(one, other):
    first = history(*(commit(number, nonce=nonce) for number, nonce in enumerate(one, 1)))
    second = history(*(commit(number, nonce=nonce) for number, nonce in enumerate(other, 1)))
    for position in range(min(first.head, second.head) + 1):
        assert (first.hash_at(position) == second.hash_at(position)) == (one[:position] == other[:position])


def told(history: History, *, since: int) -> dict[str, object]:
    """All that a history tells without entries at or before a position."""
    positions = range(since + 1, history.head + 1)
    return {
        "head": history.head,
        "after": list(history.after(since)),
        "entries": [history.entry(position) for position in positions],
        "hashes": [history.hash_at(position) for position in range(since, history.head + 1)],
        "decided": [history.decided(instant(number)) for number in range(20)],
        "newest": history.newest_instant,
        "commits": [history.commits_after(position) for position in range(history.head)],
        "appends": history.appends,
        "horizon": history.horizon,
        "replacing": history.replacing(range(history.head + 1)),
        "retained": [history.retained_since(horizon) for horizon in range(history.head + 1)],
        "replaced": [history.replaced(range(start, history.head + 1)) for start in positions],
        "held": [history.has_contained(partition) for partition in (*PARTITIONS, "month=9")],
        "new": [history.new_partitions(position) for position in positions],
        "as base": history.as_base(),
    }


@settings(max_examples=examples(200))
@given(entries=log_entries(), forgets=st.booleans(), data=st.data())
def test_one_from_a_base_or_that_forgot_tells_what_one_of_the_whole_log_does_and_all_that_it_took_back(
    entries, forgets, data
):
    at = data.draw(st.integers(0, len(entries)))
    whole = history_of(entries)
    if forgets:
        later = history_of(entries)
        later.forget(at)
    else:
        later = history_of(entries[at:], history_of(entries[:at]))
    for since in (at, data.draw(st.integers(0, at)), 0):
        later.take_back(entries[since : later.base])
        assert later.base == since
        if forgets or since in (at, 0):  # in between, one from a base does not know the hashes
            assert told(later, since=since) == told(whole, since=since)
    for position in range(whole.head):
        assert later.files_at(position) == whole.files_at(position)


@pytest.mark.parametrize("nonce", ["n1", "another"])
def test_entries_that_are_taken_back_in_turns_are_held_against_the_base_as_one(nonce):
    base = history_of([commit(number) for number in range(1, 6)])
    history = history_of((commit(6),), base)
    history.take_back((commit(4), commit(5)))
    history.take_back((commit(2), commit(3)))
    if nonce == "n1":
        history.take_back((commit(1),))
        assert [history.hash_at(position) for position in range(6)] == [base.hash_at(each) for each in range(6)]
    else:
        with pytest.raises(CorruptObject, match=r"up to position 5 .* delete .hoodie/.tallymark/checkpoint"):
            history.take_back((commit(1, nonce=nonce),))
        assert history.base == 1


FIRST = data_file("month=1", 1)
OLD: tuple[LogEntry, ...] = (
    commit(1, added=(FIRST,), txn="etl:1"),
    commit(2, scope=partitions("month=1"), removed=(FIRST,)),
)


@pytest.mark.parametrize(
    "ask",
    [
        lambda history: history.entry(2),
        lambda history: list(history.after(1)),
        lambda history: history.replaced(range(1, 4)),
        lambda history: history.decision(instant(1)),
        lambda history: history.new_partitions(1),
        lambda history: history.hash_at(0),
        lambda history: history.files_at(2),
        lambda history: history.files_expired_by(4),
    ],
)
def test_what_needs_an_entry_before_the_base_fails_and_is_never_answered_by_less(ask):
    history = history_of((rollback(3), clean(4, horizon=2)), history_of(OLD))
    with pytest.raises(AssertionError, match=r"reach it|entries from the first on"):
        ask(history)


def test_what_came_before_the_base_is_known_where_no_entry_is_needed():
    history = history_of((rollback(3),), history_of(OLD))
    assert history.decided(instant(1)) == (1, instant(1), "commit", False)
    assert history.txn_position("etl:1") == 1
    assert history.instants_at(2) == [instant(2)]


def test_a_late_entry_of_an_instant_that_was_decided_before_the_base_is_void():
    history = history_of((commit(1, added=(data_file("month=2", 9),)),), history_of(OLD))
    assert list(history.after(2)) == []
    assert not history.has_contained("month=2")


def test_the_sizes_of_the_newest_appends_are_known():
    sizes = [replace(data_file("month=1", number), rows=number) for number in range(1, APPENDS_KEPT + 3)]
    entries = [commit(number, added=(file,)) for number, file in enumerate(sizes, 1)]
    history = history_of(entries[APPENDS_KEPT:], history_of(entries[:APPENDS_KEPT]))
    assert history.appends == tuple((file.rows, file.bytes) for file in reversed(sizes[2:]))
