"""What follows from a commit log."""

from dataclasses import replace

from tallymark.engine.timeline.history import History
from tests.engine.timeline.entries import ALL, commit, data_file, instant, partitions, rollback


def history(*entries) -> History:
    read = History()
    for entry in entries:
        read.apply(entry)
    return read


def test_an_empty_history_holds_nothing():
    empty = history()
    assert empty.head == 0
    assert empty.files == ()
    assert empty.newest_instant is None
    assert empty.decision(instant(1)) is None
    assert list(empty.after(0)) == []


def test_a_commit_adds_its_files_and_removes_those_it_names():
    first, second = data_file("month=1", 1), data_file("month=1", 2)
    read = history(commit(1, added=(first,)), commit(2, scope=partitions("month=1"), added=(second,), removed=(first,)))
    assert read.files == (second,)
    assert read.head == 2


def test_files_are_sorted_by_path_whatever_the_order_of_commits():
    late, early = data_file("month=2", 1), data_file("month=1", 2)
    assert history(commit(1, added=(late,)), commit(2, added=(early,))).files == (early, late)


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
        assert read.files_at(position) == history(*entries[:position]).files
    assert read.files_at(3) == (second,)


def test_a_rollback_decides_its_instant_and_adds_nothing():
    read = history(rollback(1))
    assert read.decision(instant(1)) == (1, rollback(1))
    assert read.files == ()


def test_a_second_entry_of_an_instant_is_void():
    file = data_file("", 1)
    read = history(rollback(1), commit(1, added=(file,)), commit(2))
    assert read.files == ()
    assert read.decision(instant(1)) == (1, rollback(1))
    assert [position for position, _ in read.after(0)] == [1, 3]
    assert read.entry(2).kind == "commit"


def test_a_txn_is_found_where_it_was_committed():
    read = history(commit(1), commit(2, txn="etl:7"), commit(3, txn="etl:8"))
    assert read.committed_as("etl:7") == (2, commit(2, txn="etl:7"))
    assert read.committed_as("etl:9") is None


def test_a_rolled_back_txn_and_a_void_commit_of_one_do_not_count():
    ended = rollback(1)
    read = history(ended, commit(1, txn="etl:7"), replace(rollback(2), txn="etl:7"))
    assert read.committed_as("etl:7") is None
    read.apply(commit(3, txn="etl:7"))
    assert read.committed_as("etl:7") == (4, commit(3, txn="etl:7"))


def test_a_void_entry_removes_nothing_either():
    file = data_file("", 1)
    read = history(commit(1, added=(file,)), rollback(2), commit(2, scope=ALL, removed=(file,)))
    assert read.files == (file,)


def test_after_tells_only_what_lies_beyond_the_position():
    read = history(commit(1), commit(2), commit(3))
    assert [entry.instant for _, entry in read.after(1)] == [instant(2), instant(3)]
    assert list(read.after(3)) == []


def test_the_newest_instant_is_the_greatest_and_not_the_last():
    assert history(commit(7), commit(3)).newest_instant == instant(7)


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
