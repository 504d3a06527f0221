"""Writers at once: which of them exclude each other, and what the loser leaves."""

import pytest

from tallymark.engine.errors import ConflictError
from tallymark.engine.jobs import write_job
from tallymark.engine.timeline.log import CommitLog
from tests.engine.jobs.scene import Store, begin, committed, table, write_rows

dynamic = {"mode": "overwrite", "partition_overwrite": "dynamic"}
whole = {"mode": "overwrite"}
append = {"mode": "append"}


async def conflicting(store: Store, first: dict, second: dict, months=None, others=None) -> ConflictError | None:
    """Both begin; the first commits, then the second tries to. Returns what it is told."""
    told: ConflictError | None = None
    async with begin(store.backend, **first) as winner:
        report = await write_rows(winner, store.backend, months or {1: 2})
        try:
            async with begin(store.backend, **second) as loser:
                late = await write_rows(loser, store.backend, others or {1: 3})
                await winner.commit([report])
                await loser.commit([late])
        except ConflictError as error:
            told = error
    if told is not None:
        assert told.winner == winner.instant
        assert store.decisions[loser.instant]["kind"] == "rollback"
        left = {path for path in store.data_files if path.endswith(f"_{loser.instant}.parquet")}
        assert left <= store.fences
    return told


EXCLUDED = {
    # the first writer, the second and its rows, what there is before, and the partition that the error names
    "a partition of two": (dynamic, dynamic, {1: 3, 2: 3}, {1: 5, 2: 5}, "month=1"),
    "an empty partition": (dynamic, dynamic, {1: 3}, {2: 5}, "month=1"),
    "everything, then a part": (whole, dynamic, {1: 3}, {1: 5, 2: 5}, "month=1"),
    "a part, then everything": (dynamic, whole, {1: 3}, {1: 5, 2: 5}, "month=1"),
    "everything twice": (whole, whole, {1: 3}, {1: 5, 2: 5}, "month=1"),
    "everything of an empty table": (whole, whole, {1: 3}, {}, None),
}


@pytest.mark.parametrize(("first", "second", "others", "months", "shared"), EXCLUDED.values(), ids=EXCLUDED)
async def test_of_overwrites_that_share_a_partition_one_wins_and_the_other_leaves_nothing(
    store, first, second, others, months, shared
):
    if months:
        await committed(store.backend, months=months)
    error = await conflicting(store, first, second, others=others)
    assert error is not None
    assert error.partition == shared
    assert (shared or "the whole table") in str(error)
    assert error.winner in str(error)
    files = (await table(store.backend).snapshot()).files
    kept = months if first is dynamic else {}
    assert {file.partition: file.rows for file in files} == {
        f"month={month}": rows for month, rows in {**kept, 1: 2}.items()
    }
    store.check_at_rest()


@pytest.mark.parametrize(
    ("first", "second", "months", "others"),
    [
        (dynamic, dynamic, {1: 5, 2: 5}, {2: 3}),
        (append, dynamic, {1: 5}, {1: 3}),
        (append, whole, {1: 5}, {1: 3}),
        (dynamic, append, {1: 5}, {1: 3}),
        (whole, append, {1: 5}, {1: 3}),
    ],
    ids=["different partitions", "append, then part", "append, then all", "part, then append", "all, then append"],
)
async def test_what_replaces_nothing_of_the_other_succeeds_beside_it(store, first, second, months, others):
    """The first writes 2 rows of month 1, the second 3 rows; the old rows that an overwrite covers are replaced."""
    await committed(store.backend, months=months)
    assert await conflicting(store, first, second, {1: 2}, others) is None
    assert (await table(store.backend).snapshot()).rows == 5
    store.check_at_rest()


async def test_a_dynamic_overwrite_with_nothing_excludes_nobody(unstaged):
    await committed(unstaged.backend)
    async with begin(unstaged.backend, **whole) as other, begin(unstaged.backend, **dynamic) as nothing:
        report = await write_rows(other, unstaged.backend)
        await nothing.commit([])
        await other.commit([report])
    unstaged.check_at_rest()


async def test_a_loser_whose_log_was_read_again_from_a_later_entry_is_given_the_conflict(store, monkeypatch):
    async def read_again(log: CommitLog, txn: str | None, request: str) -> None:
        log.history.forget(log.history.head)

    monkeypatch.setattr(write_job, "committed_write", read_again)
    assert await conflicting(store, whole, whole) is not None
