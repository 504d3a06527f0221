"""Writes by key, whole: what the table holds afterwards, and what the result says of it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from tallymark.backends import Backend
from tallymark.backends.errors import BackendError
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import ConflictError, CorruptObject, InvalidRequest
from tallymark.engine.settings import NO_SIZING, SizingSettings
from tallymark.engine.tasks.changes import HASH
from tallymark.engine.tasks.merge import ACTION, ROW
from tallymark.engine.upsert.locate import hit_counts
from tests.engine.jobs.scene import die
from tests.engine.upsert.scene import KEYED, Changing, changed, changing, people, person, rows_of, table_at
from tests.support.faulty import FaultyBackend
from tests.support.loops import on_both_loops
from tests.table_invariants import table_is_at_rest


async def names_of(backend) -> list[tuple[Any, ...]]:
    """Key, partition and name of each row of a table at rest."""
    table_is_at_rest({entry.path: await backend.get(entry.path) async for entry in backend.list("")})
    return sorted((row["id"], row["land"], row["name"]) for row in await rows_of(backend))


@pytest.fixture(params=[True, False], ids=["staging", "no_staging"])
def storage(request):
    return MemoryBackend(has_staging=request.param)


@on_both_loops
async def test_an_upsert_replaces_rows_of_known_keys_and_adds_the_others(storage):
    await changed(storage, person(1, name="a"), person(2, name="b"), person(3, "B", name="c"), **KEYED)
    result = await changed(storage, person(2, at=1, name="B"), person(4, name="d"))
    assert await names_of(storage) == [(1, "A", "a"), (2, "A", "B"), (3, "B", "c"), (4, "A", "d")]
    found = result.changes
    assert found is not None
    assert (found.inserted, found.updated, found.deleted, found.ignored, found.superseded) == (1, 1, 0, 0, 0)
    assert (found.looked_up_files, found.rewritten_files, result.removed_files, result.rows) == (1, 1, 1, 2)
    assert result.sizing is not None
    assert (result.sizing.planned_fills, result.sizing.filled_files) == (0, 0), "it is rewritten for its updates"


@on_both_loops
async def test_older_rows_are_ignored_and_equal_ones_win(storage):
    await changed(storage, person(1, at=5, name="a"), person(2, at=5, name="b"), **KEYED)
    result = await changed(storage, person(1, at=4, name="old"), person(2, at=5, name="new"), person(2, at=3, name="x"))
    assert await names_of(storage) == [(1, "A", "a"), (2, "A", "new")]
    assert (result.changes.updated, result.changes.ignored) == (1, 2)


@on_both_loops
async def test_a_delete_by_key_needs_the_key_alone_and_ignores_keys_that_are_not_there(storage):
    await changed(storage, person(1, name="a"), person(2, at=9, name="b"), person(2, "B", name="c"), **KEYED)
    keys = pa.table({"id": [2, 7], "land": ["A", "A"]})
    async with changing(storage, "delete", keys.schema) as job:
        result = await Changing(job, storage, keys, delete=True).run()
    assert await names_of(storage) == [(1, "A", "a"), (2, "B", "c")]
    assert (result.changes.deleted, result.changes.ignored, result.rows) == (1, 1, 0)


@on_both_loops
async def test_a_file_whose_rows_are_all_deleted_has_no_successor(storage):
    await changed(storage, person(1), person(2), **KEYED)
    result = await changed(storage, person(1), person(2), mode="delete")
    assert (await table_at(storage).snapshot()).files == ()
    assert (result.files, result.removed_files) == (0, 1)


@on_both_loops
async def test_rows_flagged_for_deletion_delete_and_the_others_of_the_batch_write(storage):
    await changed(storage, person(1, name="a"), person(2, name="b"), **KEYED)
    await changed(storage, person(1, at=1), person(2, at=1, name="B"), person(3), delete=pa.array([True, None, True]))
    assert await names_of(storage) == [(2, "A", "B")]
    for flags, given in ((pa.array([True]), "1 values of bool"), ([1, 0], "2 values of list")):
        with pytest.raises(InvalidRequest, match=f"delete is {given}, and the batches have 2 rows; give an "):
            await changed(storage, person(1), person(2), delete=flags)


@on_both_loops
async def test_keep_inserts_only_what_is_absent_and_rewrites_nothing(storage):
    await changed(storage, person(1, name="a"), **KEYED)
    result = await changed(storage, person(1, at=1, name="x"), person(2, name="b"), keep=True)
    assert await names_of(storage) == [(1, "A", "a"), (2, "A", "b")]
    assert (result.changes.inserted, result.changes.ignored, result.changes.rewritten_files) == (1, 1, 0)


@on_both_loops
async def test_keep_leaves_a_doubled_key_as_it_is(storage):
    await changed(storage, person(1, name="a"), person(1, name="b"), mode="append", **KEYED)
    await changed(storage, person(1, at=1, name="x"), keep=True)
    assert await names_of(storage) == [(1, "A", "a"), (1, "A", "b")]


@on_both_loops
async def test_a_new_row_that_the_batch_deletes_again_is_not_inserted(storage):
    result = await changed(storage, person(1, at=1), person(1, at=2), delete=pa.array([False, True]), **KEYED)
    assert await names_of(storage) == []
    assert (result.changes.inserted, result.changes.ignored) == (0, 2)
    with pytest.raises(InvalidRequest, match="changes of one key differ and are equal in order_by"):
        await changed(storage, person(1, at=1), person(1, at=1), delete=pa.array([False, True]))


@on_both_loops
async def test_fail_refuses_a_key_that_is_there_and_nothing_is_changed(storage):
    await changed(storage, person(1, name="a"), **KEYED)
    async with changing(storage, when_matched="fail") as job:
        step = Changing(job, storage, people(person(1), person(2)))
        await step.look_up()
        with pytest.raises(InvalidRequest, match="1 rows have a key that the table has, such as in land=A/"):
            await step.plan()
    assert await names_of(storage) == [(1, "A", "a")]


@on_both_loops
async def test_a_key_may_be_in_each_partition_or_its_row_moves(storage):
    await changed(storage, person(1, "A", name="a"), **KEYED)
    await changed(storage, person(1, "B", at=1, name="b"))
    assert await names_of(storage) == [(1, "A", "a"), (1, "B", "b")]
    other = MemoryBackend()
    await changed(other, person(1, "A", name="a"), person(2, "A"), **{**KEYED, "unique_in": "table"})
    result = await changed(other, person(1, "B", at=1, name="b"))
    assert await names_of(other) == [(1, "B", "b"), (2, "A", "")]
    assert (result.changes.inserted, result.changes.deleted, result.changes.superseded) == (1, 1, 1)
    await changed(other, person(1, "A", at=0, name="late"))
    assert await names_of(other) == [(1, "B", "b"), (2, "A", "")]
    await changed(other, person(1, None), mode="delete")
    assert await names_of(other) == [(2, "A", "")]


@on_both_loops
async def test_of_rows_of_one_key_in_several_partitions_the_greatest_alone_counts(storage):
    key = {**KEYED, "unique_in": "table"}
    result = await changed(storage, person(1, "A", at=1), person(1, "A", at=1), person(1, "B", at=2), **key)
    assert await names_of(storage) == [(1, "B", "")]
    assert (result.changes.inserted, result.changes.ignored) == (1, 2)
    moved = person(1, "A", at=3)
    result = await changed(storage, moved, moved)
    assert (result.changes.inserted, result.changes.deleted, result.changes.superseded) == (1, 1, 1)
    message = "rows of one key are in different partitions or delete it, and order_by does not decide between them: id="
    with pytest.raises(InvalidRequest, match=message + "1; "):
        await changed(storage, person(1, "A", at=4), person(1, "B", at=4))
    with pytest.raises(InvalidRequest, match=message + "1; "):
        await changed(storage, person(1, "B", at=4), person(1, "B", at=4), delete=pa.array([False, True]))
    assert await names_of(storage) == [(1, "A", "")]


@on_both_loops
async def test_a_delete_is_as_new_as_its_own_partition_says(storage):
    key = {**KEYED, "unique_in": "table", "order_by": ["land", "at"]}
    await changed(storage, person(1, "A", at=5), person(2, "C", at=5), person(3, "B", at=5), **key)
    rows = [person(1, "B"), person(2, "B", at=9), person(3, "B", at=4), person(4, "B")]
    result = await changed(storage, *rows, delete=pa.array([True] * 4))
    assert [row[0] for row in await names_of(storage)] == [2, 3]
    assert (result.changes.deleted, result.changes.ignored) == (1, 3)


@on_both_loops
async def test_a_delete_by_key_finds_the_rows_in_any_partition_whatever_it_names_itself(storage):
    rows = [person(id_, land) for id_, land in enumerate("ABCABCABC")]
    await changed(storage, *rows, **{**KEYED, "unique_in": "table"})
    keys = people(*(person(id_, land, at=None) for id_, land in zip(range(8), "BACCBABA", strict=True)))
    twice = pa.concat_tables([keys, people(person(0, "C", at=None))])
    async with changing(storage, "delete", keys.schema) as job:
        await Changing(job, storage, twice, delete=True, task_bytes=1 << 30).run()
    assert await names_of(storage) == [(8, "C", "")]


@on_both_loops
async def test_rows_without_the_columns_of_their_static_partition_are_written_there(storage):
    await changed(storage, person(1, "B"), person(2), **{**KEYED, "unique_in": "table"})
    rows = people(person(1, at=1, name="x"), person(3)).drop_columns(["land"])
    async with changing(storage, schema=rows.schema, partition={"land": "B"}) as job:
        await Changing(job, storage, rows).run()
    assert await names_of(storage) == [(1, "B", "x"), (2, "A", ""), (3, "B", "")]


@on_both_loops
async def test_a_null_key_is_refused_by_every_write(storage):
    await changed(storage, person(1), **KEYED)
    for mode in ("upsert", "delete", "append"):
        with pytest.raises(InvalidRequest, match="column 'id' has 1 nulls, and the table's schema allows none"):
            await changed(storage, {**person(1), "id": None}, person(2), mode=mode)
    assert await names_of(storage) == [(1, "A", "")]


@on_both_loops
async def test_a_row_without_a_column_is_refused_rather_than_nulled(storage, monkeypatch):
    await changed(storage, person(1, name="a"), **KEYED)
    rows = people(person(1, at=1)).drop_columns(["name"])
    by_engine = rows.append_column(ROW, [[0]]).append_column(ACTION, pa.array([0], pa.int8()))
    async with changing(storage) as job:
        steps = Changing(job, storage, rows)
        await steps.look_up()
        await steps.plan()
        for parts in (steps.parts, lambda: [by_engine]):
            monkeypatch.setattr(steps, "parts", parts)
            with pytest.raises(InvalidRequest, match=r"column 'name' .* is missing from a batch; give it once"):
                await steps.write()
    assert await names_of(storage) == [(1, "A", "a")]


@on_both_loops
async def test_what_arrives_after_a_delete_is_inserted_however_old(storage):
    await changed(storage, person(1, at=9), person(2), **KEYED)
    await changed(storage, person(1), mode="delete")
    result = await changed(storage, person(1, at=3))
    assert (result.changes.inserted, result.changes.ignored) == (1, 0)
    assert sorted(row["id"] for row in await rows_of(storage)) == [1, 2]


@on_both_loops
async def test_a_doubled_key_is_healed_by_its_next_upsert(storage):
    await changed(storage, person(1, name="a"), person(1, name="b"), mode="append", **KEYED)
    await changed(storage, person(1, name="c"), mode="append")
    assert len(await rows_of(storage)) == 3
    result = await changed(storage, person(1, at=1, name="d"))
    assert await names_of(storage) == [(1, "A", "d")]
    assert (result.changes.updated, result.changes.superseded) == (1, 2)


@on_both_loops
async def test_two_upserts_of_one_new_key_never_both_stand(storage):
    await changed(storage, person(1), **KEYED)
    async with changing(storage) as slow:
        step = Changing(slow, storage, people(person(2, name="slow"), person(9)))
        await step.look_up()
        await step.plan()
        await changed(storage, person(2, name="quick"))
        reports = await step.write()
        with pytest.raises(ConflictError, match=r"a row of key \{'id': 2\}, which another writer has put into land=A/"):
            await slow.commit(reports)
    assert await names_of(storage) == [(1, "A", ""), (2, "A", "quick")]


@on_both_loops
async def test_an_append_of_other_keys_disturbs_no_upsert(storage):
    await changed(storage, person(1), **KEYED)
    async with changing(storage) as slow:
        step = Changing(slow, storage, people(person(1, at=1, name="x"), person(4)))
        await step.look_up()
        await step.plan()
        await changed(storage, person(2), person(5), mode="append")
        await slow.commit(await step.write())
    assert [id_ for id_, _, _ in await names_of(storage)] == [1, 2, 4, 5]


@on_both_loops
async def test_an_upsert_whose_file_was_replaced_conflicts(storage):
    await changed(storage, person(1), person(2), **KEYED)
    async with changing(storage) as slow:
        step = Changing(slow, storage, people(person(1, at=1)))
        await step.look_up()
        await step.plan()
        await changed(storage, person(2, at=1, name="x"))
        with pytest.raises(ConflictError, match="wants to change rows of partition 'land=A', and instant"):
            await slow.commit(await step.write())
    assert await names_of(storage) == [(1, "A", ""), (2, "A", "x")]


@on_both_loops
async def test_a_row_that_was_left_out_for_a_stored_one_conflicts_with_its_delete(storage):
    await changed(storage, person(1, at=2), person(2), **{**KEYED, "unique_in": "table"})
    for rows, keep in ([person(1)], True), ([person(1, "B", at=1)], False):
        async with changing(storage, when_matched="keep" if keep else "update") as slow:
            step = Changing(slow, storage, people(*rows), keep=keep)
            await step.look_up()
            await step.plan()
            await changed(storage, person(1), mode="delete")
            reports = await step.write()
            assert {report.rewrites for report in reports} == {()}
            with pytest.raises(ConflictError, match="wants to change rows of partition 'land=A', and instant"):
                await slow.commit(reports)
        await changed(storage, person(1, at=2))


@on_both_loops
async def test_an_overwrite_that_read_before_an_upsert_conflicts_with_it(storage):
    await changed(storage, person(1), **KEYED)
    base = (await table_at(storage).snapshot()).position
    await changed(storage, person(2))
    with pytest.raises(ConflictError, match="has changed rows of that since"):
        await changed(storage, person(2, name="x"), mode="overwrite", base=base)


@on_both_loops
async def test_tasks_with_other_rows_than_were_looked_up_are_refused(storage):
    await changed(storage, person(1), **KEYED)
    async with changing(storage) as job:
        step = Changing(job, storage, people(person(1, at=1), person(2)))
        await step.look_up()
        await step.plan()
        step.rows = step.rows.slice(0, 1)
        with pytest.raises(InvalidRequest, match="the input was not the same when it was computed again"):
            await job.commit(await step.write())
    assert await names_of(storage) == [(1, "A", "")]


@on_both_loops
async def test_tasks_with_further_rows_than_were_looked_up_are_refused(storage):
    await changed(storage, person(1), **KEYED)
    async with changing(storage) as job:
        step = Changing(job, storage, people(person(2)))
        await step.look_up()
        await step.plan()
        step.rows = people(person(2), person(1, at=1))
        with pytest.raises(InvalidRequest, match="the input was not the same when it was computed again"):
            await job.commit(await step.write())


@on_both_loops
async def test_hashes_may_be_unsigned(storage):
    hashes = pa.array([(1 << 64) - 1, 1 << 63], pa.uint64())
    async with changing(storage, **KEYED) as job:
        await Changing(job, storage, people(person(1), person(2)).append_column(HASH, hashes)).run()
    assert len(await names_of(storage)) == 2


@on_both_loops
async def test_rows_that_differ_in_their_hash_are_refused(storage):
    rows = [people(person(id_), person(2)).append_column(HASH, pa.array([id_, 1 << 62])) for id_ in (1, 3)]
    async with changing(storage, **KEYED) as job:
        step = Changing(job, storage, rows[0])
        await step.look_up()
        await step.plan()
        step.rows = rows[1]
        with pytest.raises(InvalidRequest, match="the input was not the same when it was computed again"):
            await job.commit(await step.write())
    async with changing(storage) as job:
        assert (await Changing(job, storage, rows[0]).run()).changes.inserted == 2
    async with changing(storage, "delete") as job:
        assert (await Changing(job, storage, rows[0], delete=True).run()).changes.deleted == 2


@on_both_loops
async def test_hits_that_the_job_never_got_are_missed(storage):
    await changed(storage, person(1), **KEYED)
    async with changing(storage) as job:
        step = Changing(job, storage, people(person(1, at=1)))
        await step.look_up()
        step.hits = []
        with pytest.raises(InvalidRequest, match=r"pass .* what its lookups have found to WriteJob\.profile"):
            await job.commit(await step.write())


@on_both_loops
async def test_a_lookup_whose_result_is_dropped_is_missed(storage):
    await changed(storage, person(1), person(2, "B"), **KEYED)
    async with changing(storage) as job:
        step = Changing(job, storage, people(person(1, at=1), person(2, "B", at=1)))
        await step.look_up()
        counts = hit_counts(step.hits)
        assert list(counts.values()) == [1, 1]
        with pytest.raises(InvalidRequest, match=f"lookups of 1 files have no result, such as of {max(counts)}"):
            job.profile({min(counts): 1})
    assert sorted(row["at"] for row in await rows_of(storage)) == [0, 0]


@pytest.mark.parametrize("sizing", [NO_SIZING, SizingSettings(small_file_bytes=0)], ids=["off", "no fills"])
@on_both_loops
async def test_rows_are_changed_with_sizing_off_too(storage, sizing):
    await changed(storage, person(1), person(2), **KEYED)
    result = await changed(storage, person(1, at=1, name="x"), person(3), sizing=sizing)
    assert await names_of(storage) == [(1, "A", "x"), (2, "A", ""), (3, "A", "")]
    assert (result.changes.updated, result.changes.inserted, result.removed_files) == (1, 1, 1)


@on_both_loops
async def test_of_two_runs_of_a_txn_the_second_gets_the_result_of_the_first(storage):
    await changed(storage, person(1), **{**KEYED, "readers": "directory"})
    async with changing(storage, txn="cdc:1") as slow:
        step = Changing(slow, storage, people(person(1, at=1)))
        await step.look_up()
        await step.plan()
        first = await changed(storage, person(1, at=1), txn="cdc:1")
        reports = await step.write()
        assert [report.gone for report in reports] != [()], "the first has replaced the file"
        result = await slow.commit(reports)
    assert (result.is_rerun, result.position, result.changes) == (True, first.position, first.changes)


class Interrupted(FaultyBackend):
    """Another write is committed before the first read of a range."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.first: Callable[[], Awaitable[object]] | None = None

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        first, self.first = self.first, None
        if first is not None:
            await first()
        return await super().get_range(path, start, length)


@on_both_loops
async def test_a_late_file_that_is_replaced_before_it_is_read_is_no_conflict(storage):
    await changed(storage, person(1), **{**KEYED, "readers": "directory"})
    backend = Interrupted(storage)
    async with changing(backend) as slow:
        step = Changing(slow, backend, people(person(3)))
        await step.look_up()
        await step.plan()
        reports = await step.write()
        await changed(storage, person(2), person(4), mode="append")
        backend.first = partial(changed, storage, person(2), mode="delete")
        await slow.commit(reports)
    assert [id_ for id_, _, _ in await names_of(storage)] == [1, 3, 4]


@on_both_loops
async def test_a_late_file_that_is_missing_is_damage(storage):
    await changed(storage, person(1), **KEYED)
    async with changing(storage) as slow:
        step = Changing(slow, storage, people(person(3)))
        await step.look_up()
        await step.plan()
        reports = await step.write()
        await changed(storage, person(2), person(4), mode="append")
        [(_, added)] = (await table_at(storage).timeline())[-1:]
        await storage.delete([file.path for file in added.added])
        with pytest.raises(CorruptObject, match="is missing, and no write has replaced it"):
            await slow.commit(reports)


@on_both_loops
async def test_a_write_does_not_follow_late_files_without_end(storage, monkeypatch):
    monkeypatch.setattr("tallymark.engine.jobs.keyed.LATE_S_MAX", -1.0)
    await changed(storage, person(1), **KEYED)
    async with changing(storage) as slow:
        step = Changing(slow, storage, people(person(3)))
        await step.look_up()
        await step.plan()
        reports = await step.write()
        await changed(storage, person(2), person(4), mode="append")
        with pytest.raises(ConflictError, match=r"faster than instant .* could look its keys up"):
            await slow.commit(reports)


@on_both_loops
async def test_a_rerun_of_a_txn_returns_its_changes(storage):
    await changed(storage, person(1), **KEYED)
    first = await changed(storage, person(1, at=1), person(2), txn="cdc:1")
    async with changing(storage, txn="cdc:1") as job:
        assert job.committed is not None
        assert (job.committed.changes, job.committed.is_rerun) == (first.changes, True)
        again = await Changing(job, storage, people(person(1, at=1), person(2))).run()  # as if nothing was known of it
        assert (again.changes, again.is_rerun, again.position) == (first.changes, True, first.position)
    with pytest.raises(InvalidRequest, match="a txn names one write"):
        await changed(storage, person(1), mode="delete", txn="cdc:1")


@on_both_loops
async def test_what_a_job_leaves_that_dies_after_its_lookup_is_removed_by_the_next_write(storage):
    await changed(storage, person(1, name="a"), **KEYED)
    dying = FaultyBackend(storage)
    with suppress(BackendError):
        async with changing(dying) as job:
            step = Changing(job, dying, people(person(1, at=1), person(2)))
            await step.look_up()
            await step.plan()
            await step.write()
            die(dying)
    with pytest.raises(AssertionError, match="neither committed nor a logged fence"):
        await names_of(storage)
    await table_at(storage).rollback(job.instant)
    assert await names_of(storage) == [(1, "A", "a")]


@pytest.mark.parametrize("mode", ["upsert", "delete"])
@on_both_loops
async def test_a_table_without_a_key_takes_no_change_by_key(storage, mode):
    await changed(storage, person(1), mode="append", partition_by=["land"])
    with pytest.raises(InvalidRequest, match=f"mode='{mode}': .* without a record key.*; delete rows by where=..., ov"):
        await changed(storage, person(1), mode=mode)


@on_both_loops
async def test_a_plan_does_not_pretend_that_nothing_is_rewritten(storage):
    await changed(storage, person(1), txn="cdc:1", **KEYED)
    for mode in ("upsert", "delete"):
        with pytest.raises(InvalidRequest, match=f"mode='{mode}': the files that are rewritten are known only once"):
            await table_at(storage).plan(mode=mode)
    assert (await table_at(storage).plan(mode="upsert", txn="cdc:1")).committed_at == 1


@on_both_loops
async def test_a_plan_of_looked_up_keys_is_what_the_write_does(storage):
    everyone = [person(id_, land) for id_ in range(50) for land in "AB"]
    await changed(storage, *everyone, **KEYED)
    batch = [person(1, at=1), person(2, at=1)]
    async with changing(storage) as job:
        step = Changing(job, storage, people(*batch))
        await step.look_up()
        profile = job.profile(hit_counts(step.hits))
    plan = await table_at(storage).plan(mode="upsert", incoming=profile)
    found = {each.partition: (each.changed_rows, each.rows, each.files) for each in plan.partitions}
    assert found == {"land=A": (2, 0, 1)}
    assert "25.00 bytes for each one of the input; 2 keys found" in str(plan)
    result = await changed(storage, *batch)
    assert (plan.rewritten_bytes, plan.files) == (result.changes.rewritten_bytes, result.files)


@on_both_loops
async def test_there_is_nothing_to_delete_from_where_there_is_no_table(storage):
    with pytest.raises(InvalidRequest, match="there is no table to delete from"):
        await changed(storage, person(1), mode="delete")
    with pytest.raises(InvalidRequest, match="needs a table with a record key"):
        await changed(storage, person(1))
