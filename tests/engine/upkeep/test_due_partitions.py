"""When the files of a partition are looked at."""

from math import inf

from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.upkeep.due_partitions import LOOK_COUNT, PARTITIONS_AT_ONCE, DuePartitions


def added(due: DuePartitions, partition: str, count: int = 1, *, now: float, size: int = 1) -> None:
    due.added([DataFile(partition, f"{now}-{number}", 1, size) for number in range(count)], now=now)


def test_a_partition_is_due_after_some_files_or_some_bytes():
    due = DuePartitions(target_bytes=800, quiet_s=10)
    added(due, "many", LOOK_COUNT - 1, now=0)
    added(due, "large", now=0, size=99)
    assert due.take(now=0) == {}
    added(due, "many", now=1)
    assert (due.take(now=1), due.next_due_s(now=1)) == ({"many": False}, 0)
    added(due, "large", now=1)
    assert due.take(now=1) == {"many": False, "large": False}


def test_a_partition_is_returned_until_it_is_done_and_again_for_as_many_files_as_were_added_since_it_was_taken():
    due = DuePartitions(target_bytes=800, quiet_s=10)
    added(due, "p", LOOK_COUNT, now=0)
    assert due.take(now=0) == due.take(now=0) == {"p": False}
    added(due, "p", LOOK_COUNT - 1, now=1)
    due.done("p", is_quiet=False)
    assert due.take(now=1) == {}
    added(due, "p", now=1)
    assert due.take(now=1) == {"p": False}
    added(due, "p", LOOK_COUNT, now=2)
    due.done("p", is_quiet=False)
    assert due.take(now=2) == {"p": False}


def test_a_quiet_partition_is_due_once_and_forgotten_unless_it_got_a_file_in_that_time():
    due = DuePartitions(target_bytes=800, quiet_s=10)
    added(due, "a", now=0)
    added(due, "b", now=4)
    assert (due.take(now=9), due.next_due_s(now=9)) == ({}, 1)
    assert due.take(now=10) == {"a": True}
    added(due, "a", now=11)
    due.done("a", is_quiet=True)
    assert (due.take(now=11), due.next_due_s(now=11)) == ({}, 3)
    assert due.take(now=21) == {"b": True, "a": True}
    due.done("b", is_quiet=True)
    due.done("a", is_quiet=True)
    assert (due.take(now=99), due.next_due_s(now=99)) == ({}, inf)


def test_at_the_end_all_are_quiet_and_so_many_are_returned_at_once():
    due = DuePartitions(target_bytes=800, quiet_s=10)
    for number in range(PARTITIONS_AT_ONCE + 1):
        added(due, f"p{number}", LOOK_COUNT, now=0)
    found = due.take(now=0, is_ending=True)
    assert (len(found), set(found.values())) == (PARTITIONS_AT_ONCE, {True})
    for partition in found:
        due.done(partition, is_quiet=True)
    assert due.take(now=0, is_ending=True) == {f"p{PARTITIONS_AT_ONCE}": True}
