"""What follows from a commit log."""

from dataclasses import replace
from hashlib import sha256

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.instant import FLOOR
from tests.engine.timeline.entries import ALL, clean, commit, data_file, history_of, instant, partitions, rollback


def history(*entries: LogEntry) -> History:
    return history_of(entries)


def test_an_empty_history_holds_nothing():
    empty = history()
    assert empty.head == 0
    assert empty.files_at(0) == ()
    assert empty.newest_instant is None
    assert empty.decision(instant(1)) is None
    assert list(empty.after(0)) == []


def test_a_commit_adds_its_files_and_removes_those_it_names():
    first, second = data_file("month=1", 1), data_file("month=1", 2)
    read = history(commit(1, added=(first,)), commit(2, scope=partitions("month=1"), added=(second,), removed=(first,)))
    assert read.files_at(read.head) == (second,)
    assert read.head == 2


def test_files_are_sorted_by_path_whatever_the_order_of_commits():
    late, early = data_file("month=2", 1), data_file("month=1", 2)
    assert history(commit(1, added=(late,)), commit(2, added=(early,))).files_at(2) == (early, late)


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


def test_a_txn_is_found_where_it_was_committed():
    read = history(commit(1), commit(2, txn="etl:7"), commit(3, txn="etl:8"))
    assert read.txn_position("etl:7") == 2
    assert read.txn_position("etl:9") is None


def test_a_rolled_back_txn_and_a_void_commit_of_one_do_not_count():
    ended = rollback(1)
    read = history(ended, commit(1, txn="etl:7"), replace(rollback(2), txn="etl:7"))
    assert read.txn_position("etl:7") is None
    read.apply(commit(3, txn="etl:7"))
    assert read.txn_position("etl:7") == 4


def test_a_void_entry_removes_nothing_either():
    file = data_file("", 1)
    read = history(commit(1, added=(file,)), rollback(2), commit(2, scope=ALL, removed=(file,)))
    assert read.files_at(read.head) == (file,)


def test_a_history_has_reached_its_newest_instant_and_an_empty_one_the_floor():
    assert history().reached_instant == FLOOR
    read = history(commit(7), commit(3))
    assert read.reached_instant == read.newest_instant == instant(7)


def test_a_partition_is_new_where_it_got_its_first_file_ever():
    first, again, other = data_file("month=1", 1), data_file("month=1", 2), data_file("month=2", 2)
    read = history(commit(1, added=(first,)), commit(2, scope=ALL, added=(again, other), removed=(first,)))
    assert read.new_partitions(1) == {"month=1"}
    assert read.new_partitions(2) == {"month=2"}


def test_a_rolled_back_instant_makes_no_partition_known():
    read = history(
        rollback(1), commit(1, added=(data_file("month=1", 1),)), commit(2, added=(data_file("month=1", 2),))
    )
    assert read.new_partitions(3) == {"month=1"}


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


def test_a_clean_that_is_behind_another_lets_nothing_go():
    read = history(replacing(1), replacing(2, 1), clean(3, 2), clean(4, 1), clean(5, 2))
    assert (read.files_expired_by(4), read.files_expired_by(5), read.horizon) == ((), (), 2)


def test_a_clean_of_an_instant_that_was_rolled_back_is_void():
    read = history(replacing(1), replacing(2, 1), rollback(3), clean(3, 2))
    assert read.horizon == 0
    assert read.decision(instant(3)) == (3, rollback(3))


def test_everything_is_retained_since_the_last_position_whose_replaced_files_are_gone():
    read = history(commit(1, added=(data_file("month=1", 1),)), replacing(2, 1), commit(3), replacing(4, 2), commit(5))
    assert [read.retained_since(horizon) for horizon in range(6)] == [0, 0, 2, 2, 4, 4]


def test_a_log_without_entries_has_the_hash_of_nothing():
    assert history().hash_at(0) == sha256(b"").hexdigest()


def test_each_entry_goes_into_the_hash_by_its_position_instant_kind_and_nonce():
    first, second = commit(1), rollback(2)
    expected = sha256(b"").digest()
    for position, entry in enumerate((first, second), 1):
        expected = sha256(expected + msgpack.packb([position, entry.instant, entry.kind, entry.nonce])).digest()
    assert history(first, second).hash_at(2) == expected.hex()


def test_a_void_entry_counts_too():
    void = commit(1, nonce="again")
    assert history(commit(1), void).hash_at(2) != history(commit(1), commit(2)).hash_at(2)


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_two_logs_agree_in_a_hash_just_as_far_as_they_have_the_same_entries(one, other):
    first = history(*(commit(number, nonce=nonce) for number, nonce in enumerate(one, 1)))
    second = history(*(commit(number, nonce=nonce) for number, nonce in enumerate(other, 1)))
    for position in range(min(first.head, second.head) + 1):
        assert (first.hash_at(position) == second.hash_at(position)) == (one[:position] == other[:position])
