"""Group commit of log entries: many callers of one log share an entry, and each has its own verdict."""

from dataclasses import replace

import anyio
import pyarrow as pa
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CommitUnknown, CorruptObject, TallymarkError
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.conflict import check_conflicts
from tallymark.engine.timeline.entry import LogEntry, decode_entry, encode_entry
from tallymark.engine.timeline.group import GROUP_COUNT
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.history_base import no_history
from tallymark.engine.timeline.log import CommitLog, entry_path
from tallymark.engine.timeline.properties import PROPERTIES, TableProperties
from tests.engine.timeline.entries import commit, data_file, instant, partitions, rollback
from tests.support.faulty import Fault, FaultyBackend, lost_answer, lost_request, slow

TABLE = TableProperties(
    name="t", partition_by=(), schema=pa.schema([("id", pa.int64())]), created=instant(0), id="a-table"
)
SLOW = slow("put_new", 1.0, "*/log/*")


def opened(backend) -> CommitLog:
    log = CommitLog(backend, CommitSettings(decision_timeout_s=30))
    log.identify(TABLE.id)
    return log


def made(*faults: Fault) -> FaultyBackend:
    """Storage with faults, of a table without entries."""
    storage = MemoryBackend()
    storage._create(PROPERTIES, TABLE.encode())
    return FaultyBackend(storage, *faults)


async def win_all(log: CommitLog, *entries: LogEntry) -> list[int | str]:
    """Win these entries, all but the first at once, while that is put. Return the position of each, or the name of its
    error.
    """
    outcomes: dict[str, int | str] = {}

    async def win(entry: LogEntry) -> None:
        def check(history: History) -> None:
            check_conflicts(entry, history.after(entry.base))

        try:
            found = await log.win(entry, check=check, is_protected=lambda: True, joins=entry.kind == "commit")
            outcomes[entry.nonce] = found
        except TallymarkError as error:
            outcomes[entry.nonce] = type(error).__name__

    async with anyio.create_task_group() as tasks:
        for entry in entries:
            tasks.start_soon(win, entry)
            await anyio.sleep(0.1 if entry is entries[0] else 0)
    return [outcomes[entry.nonce] for entry in entries]


def appends(*numbers: int) -> list[LogEntry]:
    return [commit(number, added=(data_file("month=1", number),)) for number in numbers]


async def read(backend) -> History:
    return await opened(backend).refresh()


async def test_those_who_wait_for_a_put_are_decided_by_the_next_one():
    storage = made(SLOW)
    found = await win_all(opened(storage), *appends(*range(1, 8)))
    assert found == [1, *[2] * 6]
    history = await read(storage.inner)
    assert [(position, entry.instant) for position, entry in history.after(0)] == [
        (position, instant(number)) for number, position in enumerate(found, 1)
    ]
    assert {file.path for file in history.files_at(2)} == {file.path for e in appends(*range(1, 8)) for file in e.added}
    assert (history.commits_after(0), history.positions) == ([1, 2], [1, 2])


async def test_one_alone_needs_no_feature_and_a_group_names_it():
    storage = made(SLOW)
    await win_all(opened(storage), *appends(1, 2, 3))
    alone, group = [decode_entry(await storage.inner.get(entry_path(number)), source="it") for number in (1, 2)]
    assert (alone.kind, alone.reader_features, group.kind, group.reader_features) == (
        "commit",
        (),
        "group",
        ("groups",),
    )
    assert decode_entry(encode_entry(group), source="again") == group


async def test_each_has_its_own_verdict_and_who_conflicts_with_a_neighbour_is_compared_with_it_later():
    storage = made(SLOW)
    log = opened(storage)
    await win_all(log, *appends(1))
    old = data_file("month=1", 1)
    overwrites = [commit(number, scope=partitions("month=1"), removed=(old,), base=1) for number in (3, 4)]
    found = await win_all(log, *appends(2), *overwrites, *appends(5))
    assert found == [2, 3, "ConflictError", 3]
    assert {file.path for file in (await read(storage.inner)).files_at(3)} == {
        file.path for entry in appends(2, 5) for file in entry.added
    }


async def test_of_two_of_one_txn_one_is_in_a_group():
    storage = made(SLOW)
    twins = [replace(entry, txn="etl:1") for entry in appends(2, 3)]
    found = await win_all(opened(storage), *appends(1), *twins)
    assert sorted(found) == [1, 2, 3], "the check of a job would have refused the last"
    assert (await read(storage.inner)).txn_position("etl:1") == 2


async def test_a_member_that_was_rolled_back_is_void_and_its_neighbours_count():
    storage = made().inner
    late = FaultyBackend(storage, slow("put_new", 5.0, entry_path(2)), slow("put_new", 1.0, entry_path(1)))
    log = opened(late)
    async with anyio.create_task_group() as tasks:
        found: list[list[int | str]] = []

        async def run() -> None:
            found.append(await win_all(log, *appends(1, 2, 3)))

        tasks.start_soon(run)
        await anyio.sleep(3)
        await opened(storage).win(rollback(2), check=lambda _: None)
    assert found == [[1, "RolledBack", 3]]
    assert [(position, entry.kind) for position, entry in (await read(storage)).after(0)] == [
        (1, "commit"),
        (2, "rollback"),
        (3, "commit"),
    ]


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
async def test_an_unclear_put_of_a_group_is_made_clear_for_each(lost):
    storage = made(slow("put_new", 1.0, entry_path(1)), lost("put_new", entry_path(2), nth=1))
    found = await win_all(opened(storage), *appends(1, 2, 3))
    assert found == [1, 2, 2]


async def test_a_silent_store_leaves_each_caller_with_its_unclear_instant():
    storage = made(slow("put_new", 1.0, entry_path(1)), lost_request("put_new", entry_path(2)))
    assert await win_all(opened(storage), *appends(1, 2, 3)) == [1, *[CommitUnknown.__name__] * 2]
    assert anyio.current_time() < 70


async def test_a_caller_that_is_cancelled_does_not_take_its_neighbours_along():
    """It leads: its put decides them, too."""
    storage = made(SLOW)
    log, found = opened(storage), []

    async def lead(scope: anyio.CancelScope) -> None:
        with scope:
            await win_all(log, *appends(2))

    async def follow() -> None:
        await anyio.sleep(0.1)
        found.extend(await win_all(log, *appends(3)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(win_all, log, *appends(1))
        scope = anyio.CancelScope()
        await anyio.sleep(0.05)
        tasks.start_soon(lead, scope)
        tasks.start_soon(follow)
        await anyio.sleep(1.5)
        scope.cancel()
    assert found == [2]
    assert [entry.instant for _, entry in (await read(storage.inner)).after(0)] == [*map(instant, (1, 2, 3))]


async def test_a_group_is_bounded():
    storage = made(SLOW)
    many = [replace(entry, instant=f"{20261121020304000 + at}") for at, entry in enumerate([commit(1)] * 300)]
    entries = [replace(entry, nonce=f"n{at}") for at, entry in enumerate(many)]
    found = await win_all(opened(storage), *entries)
    assert [found.count(position) for position in (1, 2, 3)] == [1, GROUP_COUNT, 300 - 1 - GROUP_COUNT]


async def test_writers_with_and_without_groups_share_a_log():
    storage = made().inner
    logs = [opened(FaultyBackend(storage, slow("put_new", 0.3 + 0.1 * at, "*/log/*"))) for at in range(3)]
    found: list[int | str] = []

    async def run(at: int) -> None:
        found.extend(await win_all(logs[at], *appends(*range(10 * at + 1, 10 * at + 6))))

    async with anyio.create_task_group() as tasks:
        for at in range(3):
            tasks.start_soon(run, at)
    assert all(isinstance(position, int) for position in found)
    history = await read(storage)
    assert len(history.files_at(history.head)) == 15


@pytest.mark.parametrize("members", [(), appends(1) * 2], ids=["none", "one instant twice"])
def test_a_group_that_no_writer_puts_is_refused(members):
    group = replace(LogEntry.group_of(appends(1, 2), nonce="g"), group=tuple(members))
    with pytest.raises(CorruptObject, match="a group has members, each with its own instant"):
        decode_entry(encode_entry(group), source="it")


def test_a_history_that_starts_after_a_group_knows_its_instants():
    history = History(no_history(TABLE.id))
    linked = history.linked(LogEntry.group_of(appends(1, 2), nonce="g"))
    history.apply(linked)
    later = History(history.as_base())
    assert [later.decided(instant(number)) for number in (1, 2)] == [history.decided(instant(n)) for n in (1, 2)]
    assert later.instants_at(1) == [instant(1), instant(2)]
    with pytest.raises(AssertionError, match="reach it first"):
        later.members_at(1)
