"""A clean looks at what was replaced since the clean before it, and at nothing else: counted."""

import pytest

from tallymark.engine.maintenance.expire import CleanScan
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.log import CommitLog, new_nonce
from tallymark.engine.timeline.scope import Scope
from tests.engine.jobs.scene import Store, committed, table


def file(month: int, number: int) -> DataFile:
    return DataFile(f"month={month}", f"f{month}-{number}_0-0-0_x.parquet", 1, 1)


def commit(number: int, added: list[DataFile], removed: list[DataFile]) -> LogEntry:
    return LogEntry(
        kind="commit",
        instant=f"2026112200000{number:04d}",
        nonce=new_nonce(),
        base=number,
        operation="overwrite" if removed else "append",
        scope=Scope(partitions=frozenset(file.partition for file in removed)) if removed else None,
        added=tuple(added),
        removed=tuple(removed),
    )


async def table_of_many_partitions(store: Store, *entries: LogEntry, partitions: int = 100) -> None:
    """By its log: whether its files hold anything, no clean asks."""
    await committed(store.backend, months={1: 1}, readers="table")
    log = CommitLog(store.backend, CommitSettings())
    many = commit(0, [file(month, 0) for month in range(2, partitions + 1)], [])
    for entry in (many, *entries):
        await log.win(entry, check=lambda _: None)


@pytest.mark.no_cover
async def test_of_ten_thousand_partitions_the_one_that_was_touched_is_looked_at(unstaged):
    appends = [commit(number, [file(7, number)], []) for number in range(2, 200)]
    await table_of_many_partitions(unstaged, commit(1, [file(7, 1)], [file(7, 0)]), *appends, partitions=10_000)
    result = await table(unstaged.faulty).clean(retain_hours=0)
    assert result.looked_at == CleanScan(entries=1, partitions=1)
    assert (result.files, result.partitions) == (1, ("month=7",))
    touched = {
        path for verb in ("get", "list", "delete") for path in unstaged.faulty.paths(verb) if path[:1] not in ("", ".")
    }
    assert touched == {file(7, 0).path}
    assert "" not in unstaged.faulty.paths("list"), "nobody lists the table"


async def test_what_a_clean_has_let_go_the_next_one_does_not_look_at(unstaged):
    first = commit(1, [file(7, 1)], [file(7, 0)])
    await table_of_many_partitions(unstaged, first, commit(2, [file(8, 1)], [file(8, 0)]))
    assert (await table(unstaged.backend).clean(retain_hours=0)).looked_at == CleanScan(entries=2, partitions=2)
    assert (await table(unstaged.backend).clean(retain_hours=0)).looked_at == CleanScan(entries=0, partitions=0)
    log = CommitLog(unstaged.backend, CommitSettings())
    await log.refresh()
    await log.win(commit(9000, [file(9, 1)], [file(9, 0)]), check=lambda _: None)
    dry = await table(unstaged.backend).clean(retain_hours=0, dry_run=True)
    assert (dry.looked_at, dry.files) == (CleanScan(entries=1, partitions=1), 1)


async def test_of_what_is_not_due_yet_the_entry_alone_is_looked_at(unstaged):
    await table_of_many_partitions(unstaged, commit(1, [file(7, 1)], [file(7, 0)]))
    assert (await table(unstaged.backend).clean()).looked_at == CleanScan(entries=1, partitions=0)


async def test_a_directory_table_has_nothing_to_look_at(unstaged):
    await committed(unstaged.backend, months={1: 1})
    await committed(unstaged.backend, "overwrite", {1: 1})
    assert (await table(unstaged.backend).clean()).looked_at == CleanScan(entries=0, partitions=0)
