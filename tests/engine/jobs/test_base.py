"""``base``: an overwrite goes by what its caller has read, not by what the table holds when the write begins."""

import pytest

from tallymark.engine.errors import ConflictError
from tests.engine.jobs.scene import table
from tests.engine.jobs.yearly import DYNAMIC, MONTH, NEW, OLD, STATIC, YEAR, begin, held, write
from tests.table_invariants import overwrites_replace_what_their_base_held

pytestmark = pytest.mark.usefixtures("loop")

LATE = (8, 2013, 1)
OVERWRITES = pytest.mark.parametrize(
    "call",
    [STATIC, {**STATIC, "partition": YEAR}, DYNAMIC, {**STATIC, "partition": MONTH}],
    ids=["all", "year", "dynamic", "month"],
)


@OVERWRITES
async def test_rows_that_others_append_between_reading_and_beginning_stay(store, call):
    await write(store.backend, OLD)
    read = await table(store.backend).snapshot()
    await write(store.backend, [LATE])
    await write(store.backend, [NEW], base=read.position, **call)
    assert {LATE, NEW} <= set(held(store.objects))
    assert OLD[0] not in held(store.objects)
    assert store.log_entries[-1]["base"] == read.position
    overwrites_replace_what_their_base_held(store.objects)
    store.check_at_rest()


@OVERWRITES
async def test_it_conflicts_if_what_was_read_has_been_replaced_before_it_began(store, call):
    await write(store.backend, OLD)
    read = await table(store.backend).snapshot()
    between = await write(store.backend, [LATE], "overwrite", partition=YEAR)
    with pytest.raises(ConflictError) as caught:
        await write(store.backend, [NEW], base=read.position, **call)
    assert caught.value.winner == between.instant
    assert f"this write had read position {read.position}" in str(caught.value)
    assert LATE in held(store.objects)
    store.check_only_commits_are_left()


async def test_the_base_of_a_new_table_is_0(staged):
    await write(staged.backend, [NEW], "overwrite", base=0)
    await write(staged.backend, [LATE])
    with pytest.raises(ConflictError):
        await write(staged.backend, [], "overwrite", base=0)
    assert held(staged.objects) == [LATE, NEW]


async def test_tasks_and_base_do_not_meet_a_job_asks_its_seal_from_its_own_beginning(unstaged):
    for _ in range(3):
        await write(unstaged.backend, OLD)
    async with begin(unstaged.backend, "overwrite", base=1) as job:
        assert job.ticket.base == 3
    assert len(unstaged.committed_files) == 12


async def test_a_base_whose_files_a_clean_has_let_go_since_is_one_all_the_same(store):
    """What was read can still be replaced, or conflicts; only whether its bytes are there has changed."""
    await write(store.backend, OLD, readers="table", retain_hours=0)
    await write(store.backend, [(7, 2014, 1)])
    read = await table(store.backend).snapshot()
    await write(store.backend, [(8, 2014, 1)], "overwrite", partition={"year": 2014})
    assert [entry["kind"] for entry in store.log_entries][-1] == "clean"
    with pytest.raises(ConflictError):
        await write(store.backend, [NEW], "overwrite", base=read.position)
    await write(store.backend, [NEW], "overwrite", base=read.position, partition=YEAR)
    assert NEW in held(store.objects)
    assert OLD[0] not in held(store.objects)
    overwrites_replace_what_their_base_held(store.objects)
    store.check_at_rest()
