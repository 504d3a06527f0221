"""Deletes by predicate, whole: what the table holds afterwards, and what was read for it."""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import msgpack
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends import Backend
from tallymark.backends.errors import BackendError
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import ConflictError, InvalidRequest, UnsupportedTable
from tallymark.engine.jobs import changes
from tallymark.engine.jobs.delete import delete_rows
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import LeaseSettings
from tallymark.engine.sizing.tasks import tasks_of
from tallymark.engine.table import open_table
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.upsert.keys import KeyReport, key_task
from tallymark.engine.upsert.locate import Lookup, hit_counts, locate_task
from tallymark.engine.upsert.routing import routed
from tallymark.engine.views.checkpoint_format import CHECKPOINT_FOLDER, POINTER, decode_pointer, unseal
from tests.engine.jobs.scene import die
from tests.engine.upsert.scene import KEYED, PEOPLE, changed, changing, in_thread, people, person, rows_of, table_at
from tests.support.examples import examples
from tests.support.faulty import FaultyBackend, lost_request, refused
from tests.support.loops import on_both_loops
from tests.support.parquet import read_bytes
from tests.support.predicates import SCHEMA, Row, Where, batch_of, rows, wheres
from tests.table_invariants import table_is_at_rest

SHORT_LEASE = LeaseSettings(heartbeat_interval_s=0.1, expiry_s=1.0)
"""For a rollback, which waits until a writer has noticed that it was treated as dead."""

BY_LAND: dict[str, Any] = {"mode": "append", "partition_by": ["land"], "readers": "directory"}


@pytest.fixture(params=[True, False], ids=["staging", "no_staging"])
def storage(request):
    return MemoryBackend(has_staging=request.param)


async def ids_of(backend: Backend) -> list[int]:
    table_is_at_rest({entry.path: await backend.get(entry.path) async for entry in backend.list("")})
    return sorted(row["id"] for row in await rows_of(backend))


def data_reads(backend: FaultyBackend) -> set[str]:
    """Data files that were read, whole or in part."""
    return {path for verb in ("get", "get_range") for path in backend.paths(verb) if path.endswith(".parquet")}


async def by_engine(job: WriteJob, backend: Backend) -> Any:
    """The steps of a delete as an engine distributes them."""
    found = [Lookup.decode(lookup.encode()) for lookup in await job.look_up()]
    hits: list[pa.RecordBatch] = []
    for lookup in found:
        hits += await in_thread(lambda lookup=lookup: list(locate_task(job.ticket, lookup, backend=backend)))
    tasks = tasks_of(await job.size(job.profile(hit_counts(hits))), task_bytes=1)
    reports = [
        await in_thread(write_task, job.ticket, changes, task=number, planned=files, backend=backend)
        for number, (files, changes) in enumerate(zip(tasks, routed(job.ticket, (), hits, tasks), strict=False))
    ]
    return await job.commit(reports)


async def delete_as_drawn(parts: Sequence[list[Row]], where: str, created: dict[str, Any], is_engine: bool) -> Any:
    backend = MemoryBackend()
    for part in parts:
        async with table_at(backend).write(schema=SCHEMA, mode="append", **created) as job:
            await job.commit([await in_thread(write_task, job.ticket, [batch_of(part)], task=0, backend=backend)])
    plan = await table_at(backend).plan_delete(where)
    result: Any
    if is_engine:
        async with table_at(backend).write(mode="delete", where=where) as job:
            result = await by_engine(job, backend)
    else:
        result = await table_at(backend).delete(where)
    found = result.changes
    counts = (found.deleted, found.removed_files, found.removed_bytes, found.rewritten_files, found.rewritten_bytes)
    planned = (plan.deleted, len(plan.removed), plan.removed_bytes, len(plan.rewritten), plan.rewritten_bytes)
    assert counts == planned
    return await rows_of(backend), found.deleted


@given(
    parts=st.lists(rows, min_size=1, max_size=3),
    where=wheres,
    partition_by=st.sampled_from([(), ("ok",), ("day", "name"), ("price",)]),
    key=st.sampled_from([None, "id", "tiny", "price", "name", "day", "at", "local", "ok"]),
    is_engine=st.booleans(),
)
@settings(max_examples=examples(40))
def test_exactly_the_rows_of_which_the_predicate_is_true_go(
    parts: list[list[Row]], where: Where, partition_by: Sequence[str], key: str | None, is_engine: bool
) -> None:
    """In tables with and without partitions, and with a key, whose range proves some files."""
    created: dict[str, Any] = {"partition_by": partition_by}
    if key is not None:
        created |= {"record_key": key, "unique_in": "table", "readers": "table"}
        parts = [[row for row in part if row[key] not in (None, "")] for part in parts]
    stored = [
        {name: None if value == "" and name in partition_by else value for name, value in row.items()}
        for part in parts
        for row in part
    ]
    left, deleted = anyio.run(delete_as_drawn, parts, where.sql, created, is_engine)
    wanted = batch_of([row for row in stored if where.truth(row) is not True]).to_pylist()
    assert sorted(map(repr, left)) == sorted(map(repr, wanted))
    assert deleted == len(stored) - len(wanted)


@on_both_loops
async def test_files_that_their_partition_proves_are_not_read(storage):
    for land in "ABC":
        await changed(storage, person(1, land), person(2, land), **BY_LAND)
    backend = FaultyBackend(storage)
    result: Any = await table_at(backend).delete("land = 'A' OR (land = 'B' AND id = 1)")
    assert await ids_of(storage) == [1, 2, 2]
    assert {path[:6] for path in data_reads(backend)} == {"land=B"}
    found = result.changes
    assert (found.deleted, found.looked_up_files, found.rewritten_files, found.removed_files) == (3, 1, 1, 1)
    assert (result.rows, result.files, result.removed_files) == (0, 1, 2)


@on_both_loops
async def test_files_that_their_key_range_proves_are_not_read(storage):
    for start in (0, 10, 20):
        await changed(storage, *[person(start + number) for number in range(3)], mode="append", **KEYED)
    backend = FaultyBackend(storage)
    result: Any = await table_at(backend).delete("id >= 1 AND id < 15")
    assert await ids_of(storage) == [0, 20, 21, 22]
    assert len(data_reads(backend)) == 1
    assert (result.changes.removed_files, result.changes.rewritten_files) == (1, 1)


@on_both_loops
async def test_of_other_files_only_columns_are_read_and_those_without_a_match_stay(storage):
    rows = [person(number, name=f"{number:0400}") for number in range(2000)]
    await changed(storage, *rows, **{**BY_LAND, "partition_by": []})
    await changed(storage, person(-1), person(-2), mode="append")
    backend = FaultyBackend(storage)
    before = {file.path for file in (await table_at(storage).snapshot()).files}
    result: Any = await table_at(backend).delete("id IN (-5, -2)")
    assert len(await ids_of(storage)) == 2001
    assert result.changes.looked_up_files == 2
    whole = {path for path in backend.paths("get") if path.endswith(".parquet")}
    assert len(whole) == 1, "only the file that is rewritten"
    assert before - whole < {file.path for file in (await table_at(storage).snapshot()).files}


def test_an_untouched_file_stays_as_it_is_on_disk(tmp_path):
    async def delete() -> None:
        target = open_table(tmp_path)
        for land in "AB":
            async with target.write(schema=PEOPLE, mode="append", partition_by=["land"]) as job:
                await job.commit([await in_thread(write_task, job.ticket, people(person(1, land)), task=0)])
        before = {path: path.stat() for path in tmp_path.rglob("land=*/*.parquet")}
        await target.delete("land = 'A'")
        left = {path: path.stat() for path in tmp_path.rglob("land=*/*.parquet")}
        assert [path.parent.name for path in left] == ["land=B"]
        assert all(
            (after.st_ino, after.st_mtime_ns) == (before[path].st_ino, before[path].st_mtime_ns)
            for path, after in left.items()
        )

    anyio.run(delete)


@on_both_loops
async def test_a_file_all_of_whose_rows_are_found_is_not_read_again(storage):
    await changed(storage, person(1), person(2), **{**BY_LAND, "partition_by": []})
    backend = FaultyBackend(storage)
    result: Any = await table_at(backend).delete("id > 0")
    assert (await ids_of(storage), result.changes.removed_files, result.changes.looked_up_files) == ([], 1, 1)
    assert not [path for path in backend.paths("get") if path.endswith(".parquet")]


@on_both_loops
async def test_lookups_share_many_small_files(storage, monkeypatch):
    monkeypatch.setattr(changes, "LOOKUP_FILES", 3)
    await changed(storage, *[person(number, str(number)) for number in range(7)], **BY_LAND)
    async with table_at(storage).write(mode="delete", where="id = 1") as job:
        assert [len(lookup.files) for lookup in await job.look_up()] == [3, 3, 1]


@pytest.mark.parametrize("mode", ["overwrite", "upsert", "delete"])
@on_both_loops
async def test_it_conflicts_with_a_write_that_has_replaced_one_of_its_files(storage, mode):
    await changed(storage, person(1), person(2), **KEYED)
    for where in ("id = 1", "land = 'A'"):
        async with table_at(storage).write(mode="delete", where=where) as job:
            hits = {file.path: 1 for lookup in await job.look_up() for file in lookup.files}
            await job.size(job.profile(hits))
            await changed(storage, person(2, at=1), mode=mode)
            with pytest.raises(ConflictError, match="nothing of this write is left"):
                await job.commit([])
        await changed(storage, person(1, at=1), person(2, at=1))


@on_both_loops
async def test_a_delete_that_readers_of_hudi_do_not_see_yet_states_it(storage):
    await changed(storage, person(1), person(2), **KEYED)
    late = FaultyBackend(storage, refused("put_new", "*.replacecommit"))
    pending = (await table_at(late).delete("id = 1")).pending
    assert pending is not None
    assert "readers of the Hudi format do not see it yet" in pending


@on_both_loops
async def test_rows_that_are_appended_in_the_meantime_stay(storage):
    await changed(storage, person(1), person(2), **KEYED)
    async with table_at(storage).write(mode="delete", where="id = 1 OR id > 5") as job:
        found = await job.look_up()
        await changed(storage, person(7), mode="append")
        job.look_up = partial(_given, found)  # type: ignore[method-assign]
        await delete_rows(job, storage, concurrency=1)
    assert await ids_of(storage) == [2, 7]


async def _given(found: Any) -> Any:
    return found


@on_both_loops
async def test_a_file_that_was_replaced_before_its_task_reads_it_is_a_conflict(storage):
    await changed(storage, person(1), person(2), **BY_LAND)
    async with table_at(storage).write(mode="delete", where="id = 1") as job:
        size = job.size

        async def replaced_after(profile: Any) -> Any:
            plan = await size(profile)
            await table_at(storage).delete("id = 2")
            return plan

        job.size = replaced_after  # type: ignore[method-assign]
        with pytest.raises(ConflictError, match="was replaced by another writer since position 1"):
            await delete_rows(job, storage, concurrency=1)
    assert await ids_of(storage) == [1]


@on_both_loops
async def test_tasks_that_have_not_deleted_what_was_found_are_refused(storage):
    await changed(storage, person(1), person(2), **BY_LAND)
    async with table_at(storage).write(mode="delete", where="id = 1") as job:
        [lookup] = await job.look_up()
        with pytest.raises(InvalidRequest, match="a delete by where needs its rows first"):
            await job.commit([])
        with pytest.raises(InvalidRequest, match=r"3 hits in land=A/.*, which has fewer rows"):
            job.profile({lookup.files[0].path: 3})
        profile = job.profile({lookup.files[0].path: 1})
        for is_planned in (False, True):
            if is_planned:
                await job.size(profile)
            with pytest.raises(InvalidRequest, match="deleted 0 rows of 0 files, and the lookups found 1 in 1"):
                await job.commit([])
        with pytest.raises(InvalidRequest, match="call look_up without any"):
            await job.look_up([KeyReport(instant=job.instant, task=0, segments=(), checksum=None)])
        with pytest.raises(InvalidRequest, match="or leave where out"):
            await in_thread(key_task, job.ticket, people(person(1)), task=0, backend=storage)


@on_both_loops
async def test_a_delete_that_dies_leaves_nothing(storage):
    await changed(storage, person(1), person(2), **BY_LAND)
    dying = FaultyBackend(storage)
    with suppress(BackendError):
        async with table_at(dying, lease=SHORT_LEASE).write(mode="delete", where="id = 1") as job:
            commit = job.commit

            async def die_first(reports: Any) -> Any:
                die(dying)
                return await commit(reports)

            job.commit = die_first  # type: ignore[assignment, method-assign]
            await delete_rows(job, dying, concurrency=1)
    with pytest.raises(AssertionError):
        await ids_of(storage)
    await table_at(storage).rollback(job.instant)
    assert await ids_of(storage) == [1, 2]


@on_both_loops
async def test_where_nothing_matches_an_empty_commit_remains_as_of_an_empty_append(storage):
    await changed(storage, person(1), **BY_LAND)
    result: Any = await table_at(storage).delete("id = 5")
    assert (result.position, result.removed_files, result.changes.deleted) == (2, 0, 0)
    assert (await changed(storage, mode="append")).position == 3
    assert await ids_of(storage) == [1]


@on_both_loops
async def test_replaced_files_are_deleted_or_retained_as_the_table_was_made(storage):
    for readers, left in (("directory", 0), ("table", 2)):
        backend = MemoryBackend(has_staging=storage.has_staging)
        await changed(backend, person(1), person(2), person(1, "B"), **{**BY_LAND, "readers": readers})
        before = {file.path for file in (await table_at(backend).snapshot()).files}
        await table_at(backend).delete("id = 1")
        assert await ids_of(backend) == [2]
        assert len(before & {entry.path async for entry in backend.list("")}) == left
        if left:
            assert {file.path for file in (await table_at(backend).snapshot(as_of=1)).files} == before


@on_both_loops
async def test_a_purge_leaves_no_file_that_has_had_the_rows_but_for_readers(storage):
    table = table_at(storage)
    await changed(storage, person(1), person(2), **{**BY_LAND, "readers": "table"})
    await changed(storage, person(1), person(3), mode="overwrite")
    async with table.reading() as view:
        held = {file.path for file in view.files}
        await changed(storage, person(1), person(4), mode="overwrite")
        result = await table.delete("id = 1", purge=True, txn="gdpr:1")
        assert f"remain for process {os.getpid()}" in str(result.pending)
        left = {entry.path async for entry in storage.list("") if entry.path.endswith(".parquet")}
        assert left >= held
    again = await table.delete("id = 1", purge=True, txn="gdpr:1")
    assert (again.is_rerun, again.pending) == (True, None)
    left = {entry.path async for entry in storage.list("") if entry.path.endswith(".parquet")}
    assert left == {file.path for file in (await table.snapshot()).files}
    assert await ids_of(storage) == [4]


async def that_name(backend: Backend, key: int) -> list[str]:
    """The objects that have the key, in a range or as text."""
    found = []
    async for entry in backend.list(""):
        data = await backend.get(entry.path)
        if entry.path.startswith(f"{CHECKPOINT_FOLDER}/"):
            data = msgpack.packb(unseal(data, source=entry.path))
        rows = read_bytes(data).to_pylist() if entry.path.endswith(".parquet") else []
        if (1 << 63 | key).to_bytes(8) in data or str(key).encode() in data or key in [row["id"] for row in rows]:
            found.append(entry.path)
    return found


@pytest.mark.parametrize("readers", ["table", "directory"])
@on_both_loops
async def test_after_a_purge_no_object_has_the_key(storage, readers):
    key, table = 0x1EAF_CAFE_5EC2_E7AD, table_at(storage)
    await changed(storage, person(1), person(key), mode="append", **{**KEYED, "readers": readers})
    for at in (1, 2, 3):
        await changed(storage, person(1, at=at), person(5, "B", at=at))
        await table.checkpoint()
    [file] = [file.path for file in (await table.snapshot()).files if file.partition == "land=A"]
    assert len(await that_name(storage, key)) > 3
    result = await table.delete(f"id = {key}", purge=True, txn="gdpr:1")
    assert result.pending is None
    assert await that_name(storage, key) == []
    named = decode_pointer(await storage.get(POINTER))
    assert list(named) == sorted(named, reverse=True), "a listing shows which is the newer one of a position"
    assert sorted(row["id"] for row in await rows_of(storage)) == [1, 5]
    assert result.instant in str(await table.explain(file))
    assert (await table.delete(f"id = {key}", purge=True, txn="gdpr:1")).is_rerun
    assert (await changed(storage, person(5, "B", at=4))).changes.updated == 1


@on_both_loops
async def test_a_purge_states_that_an_open_write_needs_entries_with_the_key(storage):
    await changed(storage, person(1), person(2), **KEYED)
    async with changing(storage, mode="append"):
        result = await table_at(storage).delete("id = 1", purge=True, txn="gdpr:1")
        assert "ranges of their keys, and an open write or a retained file needs its entries" in str(result.pending)
    assert (await table_at(storage).delete("id = 1", purge=True, txn="gdpr:1")).pending is None


@on_both_loops
async def test_a_purge_that_fails_is_stated_in_the_result():
    storage = FaultyBackend(MemoryBackend())
    await changed(storage, person(1), person(2), **{**BY_LAND, "readers": "table"})
    result = await table_at(storage).delete("id = 1")
    storage.add(lost_request("list"))
    purged = await table_at(storage).purged(result)
    assert "may still have the rows (the request was lost): purge again later" in str(purged.pending)
    storage.heal()
    assert (await table_at(storage).purged(result)).pending is None


@on_both_loops
async def test_a_txn_deletes_once_and_its_where_is_declared(storage):
    await changed(storage, person(1), person(2), **BY_LAND)
    first = await table_at(storage).delete("id=1", txn="gdpr:1")
    await changed(storage, person(1), mode="append")
    again: Any = await table_at(storage).delete("( `ID` = +1 )", txn="gdpr:1")
    assert (again.is_rerun, again.position, again.changes) == (True, first.position, first.changes)
    with pytest.raises(InvalidRequest, match="a txn names one write"):
        await table_at(storage).delete("id = 2", txn="gdpr:1")
    async with table_at(storage).write(mode="delete", where="id = 1", txn="gdpr:1") as job:
        assert (await by_engine(job, storage)).position == first.position  # as if nothing was known of it
    assert await ids_of(storage) == [1, 2]


@on_both_loops
async def test_nothing_outside_of_only_partitions_is_deleted(storage):
    await changed(storage, person(1), person(1, "B"), person(2, "B"), **BY_LAND)
    for where in ("id = 1", "land IN ('A', 'B')"):
        for act in (table_at(storage).delete, table_at(storage).plan_delete):
            with pytest.raises(InvalidRequest, match="land=B"):
                await act(where, only_partitions={"land": "A"})
    assert await ids_of(storage) == [1, 1, 2]
    await table_at(storage).delete("id = 2", only_partitions={"land": "B"})
    assert await ids_of(storage) == [1, 1]


@on_both_loops
async def test_a_dry_run_leaves_nothing_behind(storage):
    await changed(storage, person(1), person(2), **BY_LAND)
    before = {entry.path: await storage.get(entry.path) async for entry in storage.list("")}
    plan = await table_at(storage).plan_delete("id = 1")
    [file] = (await table_at(storage).snapshot()).files
    assert [(found.file, found.rows) for found in plan.rewritten] == [(file, 1)]
    assert (plan.where, plan.position, plan.deleted, plan.removed) == ("(`id` = 1)", 1, 1, ())
    assert (plan.looked_up_files, plan.looked_up_bytes, plan.rewritten_bytes) == (1, file.bytes, file.bytes)
    assert {entry.path: await storage.get(entry.path) async for entry in storage.list("")} == before


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"where": "ID > 'x'"}, "column 'id' is int64"),
        ({"where": 7}, "give a text"),
        ({"where": "id = 1", "mode": "upsert"}, "where is for mode='delete', and this is 'upsert'"),
        ({"where": "id = 1", "partition": {"land": "A"}}, "compare the partition columns in where"),
        ({"where": "id = 1", "base": 1}, "reads the rows that it changes itself"),
    ],
)
@on_both_loops
async def test_what_does_not_fit_is_refused(given, error):
    backend = MemoryBackend()
    await changed(backend, person(1), **BY_LAND)
    with pytest.raises(InvalidRequest, match=error):
        async with table_at(backend).write(**{"mode": "delete", **given}):
            pass
    with pytest.raises(InvalidRequest, match="concurrency=0: give a number of tasks"):
        await table_at(backend).delete("id = 1", concurrency=0)
    nothing: Any = None
    for act in (table_at(backend).delete, table_at(backend).plan_delete):
        with pytest.raises(InvalidRequest, match="where=None: give a text"):
            await act(nothing)
    with pytest.raises(UnsupportedTable, match="holds no table yet"):
        await table_at(MemoryBackend()).delete("id = 1")


@on_both_loops
async def test_a_table_without_a_key_needs_the_feature_from_its_first_delete_on(storage):
    await changed(storage, person(1), person(2), **BY_LAND)
    await table_at(storage).delete("id = 1")
    await table_at(storage).checkpoint()
    (_, append), (_, delete) = await table_at(storage).timeline()
    assert (append.reader_features, append.writer_features) == ((), ())
    assert (delete.operation, delete.reader_features, delete.writer_features) == ("delete", ("changes",), ("changes",))
    other = MemoryBackend()
    await changed(other, person(1), **KEYED)
    await table_at(other).delete("id = 1")
    assert (await table_at(other).timeline())[-1][1].reader_features == (), "its properties have it"


@on_both_loops
async def test_a_nested_column_is_read_with_all_of_its_parts(storage):
    place = pa.struct([("city", pa.string()), ("codes", pa.list_(pa.int64()))])
    schema = pa.schema([("id", pa.int64()), ("place", place), ("not", pa.int32())])
    rows = pa.table({"id": [1, 2, 3], "place": [None, {"city": None, "codes": [4]}, None], "not": [7, 7, 8]})
    async with table_at(storage).write(schema=schema, mode="append") as job:
        await job.commit([await in_thread(write_task, job.ticket, rows.cast(schema), task=0, backend=storage)])
    await table_at(storage).delete("place IS NULL AND `not` = 7")
    assert await ids_of(storage) == [2, 3]
