"""Creation of a job's table; each call that cannot continue leaves storage unchanged."""

from typing import Any

import anyio
import pyarrow as pa
import pytest

from tallymark.backends import Unavailable
from tallymark.backends.errors import InvalidPath, NotPermitted
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import InvalidRequest, UnsupportedTable
from tallymark.engine.jobs.prepare import check_exclusive, is_trial
from tallymark.engine.settings import MarkerSettings, ServiceSettings
from tallymark.engine.table import open_table
from tallymark.engine.timeline import java_properties
from tallymark.engine.timeline.properties import PROPERTIES
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER
from tests.engine.jobs.scene import FLIGHTS, Store, begin, committed, flights, mark, table, write_in_thread, write_rows
from tests.engine.jobs.yearly import BY, MONTHS, OLD, STATIC, YEAR, write
from tests.engine.jobs.yearly import FLIGHTS as YEARLY
from tests.support.faulty import FaultyBackend, lost_answer, lost_request, refused, slow
from tests.support.loops import on_both_loops
from tests.table_invariants import FLOOR


async def write_with(target, **named) -> None:
    named.setdefault("schema", FLIGHTS)
    named.setdefault("mode", "append")
    async with target.write(**named) as job:
        await job.commit([])


async def refusal(storage: Store, **named) -> InvalidRequest:
    """What the call is told; storage is byte-identical."""
    before = (storage.objects, storage.modified)
    with pytest.raises(InvalidRequest) as caught:
        await write_with(table(storage.backend), **named)
    assert (storage.objects, storage.modified) == before
    return caught.value


@on_both_loops
async def test_the_first_write_creates_the_table_with_its_floor(staged):
    async with begin(staged.backend) as job:
        assert f".hoodie/{FLOOR}.commit" in staged.objects, "before any data"
        await job.commit([await write_rows(job, staged.backend)])
    assert java_properties.load(staged.objects[PROPERTIES], source="")["hoodie.table.partition.fields"] == "month"
    staged.check_at_rest()


async def test_an_empty_write_makes_an_empty_table(staged):
    await write_with(table(staged.backend))
    snapshot = await table(staged.backend).snapshot()
    assert (snapshot.files, snapshot.rows, snapshot.schema) == ((), 0, FLIGHTS)
    staged.check_at_rest()


@pytest.mark.parametrize("delays", [(0, 0), (1, 0), (0, 1), (2, 1)])
async def test_of_three_first_writers_one_creates_the_table_and_all_write(unstaged, delays):
    """Whatever is slow: the look for the properties, the look around, the creation."""
    get_s, list_s = delays
    slow_one = FaultyBackend(unstaged.backend, slow("get", 0, PROPERTIES, after_s=get_s), slow("list", list_s, ""))
    async with anyio.create_task_group() as writers:
        for backend in (slow_one, FaultyBackend(unstaged.backend, slow("put_new", 0.5, PROPERTIES)), unstaged.backend):
            writers.start_soon(committed, backend)
    assert len((await table(unstaged.backend).snapshot()).files) == 6
    unstaged.check_at_rest()


async def test_a_table_that_appears_between_the_two_looks_is_no_strange_directory(unstaged):

    class Late(FaultyBackend):
        async def list(self, directory: str):
            if directory == "" and PROPERTIES not in unstaged.objects:
                await committed(self.inner)
            async for entry in super().list(directory):
                yield entry

    await committed(Late(unstaged.backend))
    assert len((await table(unstaged.backend).snapshot()).files) == 4
    unstaged.check_at_rest()


DEATHS = [
    lost_answer("put_new", PROPERTIES),
    *(lost_request("put_new", f".hoodie/{FLOOR}.*", nth=nth) for nth in (1, 2, 3)),
]


@pytest.mark.parametrize("fault", DEATHS, ids=["properties", "floor 1", "floor 2", "floor 3"])
async def test_a_creation_that_its_writer_died_over_is_completed_by_the_next_write(unstaged, fault):
    with pytest.raises(OSError, match="lost"):
        await committed(FaultyBackend(unstaged.backend, fault))
    await committed(unstaged.backend)
    unstaged.check_at_rest()


@pytest.mark.parametrize(
    "schema",
    [
        FLIGHTS,
        FLIGHTS.set(0, pa.field("flight", pa.int64(), nullable=False)),
        pa.schema([("month", pa.int32()), ("flight", pa.int64())]),
    ],
    ids=["alike", "nullability", "order"],
)
async def test_an_existing_table_keeps_its_schema_and_its_partitioning_where_none_is_named(staged, schema):
    await committed(staged.backend)
    async with table(staged.backend).write(schema=schema, mode="append") as job:
        assert (job.ticket.schema, job.ticket.partition_by) == (FLIGHTS, ("month",))
        await job.commit([])


async def test_labels_of_time_zones_and_inner_nullability_may_differ(staged):
    def schema(zone: str, inner_null: bool) -> pa.Schema:
        item = pa.field("item", pa.timestamp("us", zone), nullable=inner_null)
        return pa.schema(
            [
                ("at", pa.timestamp("us", zone)),
                ("many", pa.list_(item)),
                ("pair", pa.struct([item])),
                ("named", pa.map_(pa.string(), item)),
            ]
        )

    await write_with(table(staged.backend), schema=schema("UTC", True))
    await write_with(table(staged.backend), schema=schema("Europe/Vienna", True))
    staged.check_at_rest()


TWICE = pa.schema([("a", pa.int64()), ("a", pa.int64())])

REFUSED: list[tuple[dict[str, Any], str]] = [
    # call, and what its error holds; HEAD is the last position of the log
    ({"mode": "merge"}, "mode='merge': say 'append' or 'overwrite', or 'upsert' or 'delete'"),
    ({"mode": None}, "mode=None"),
    ({"partition_by": "month"}, "partition_by='month' is one string; give a list: ['month']"),
    ({"partition_by": [1]}, "partition_by=[1]: give a list of column names"),
    ({"partition_by": None}, "partition_by=None: give a list of column names"),
    ({"schema": {"a": pa.int64()}}, "schema is dict; give a pyarrow.Schema"),
    ({"partition_overwrite": "Dynamic"}, "partition_overwrite='Dynamic': say 'static' or 'dynamic'"),
    ({"partition_by": ["day"]}, "'day'"),
    ({"partition_by": ["month", "month"]}, "'month' is named twice"),
    ({"partition_by": ["year", "month", "flight"]}, "are all there is"),
    ({"schema": pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int8()))]), "partition_by": ["b"]}, "'b'"),
    ({"schema": pa.schema([("a", pa.struct([("b", pa.int8())]))]), "partition_by": ["a.b"]}, "'a.b'"),
    ({"schema": TWICE, "partition_by": ()}, "'a'"),
    ({"schema": pa.schema([]), "partition_by": ()}, "column"),
    ({"schema": pa.schema([("a", pa.month_day_nano_interval())]), "partition_by": ()}, "'a'"),
    ({"partition": {"year": "2013"}}, "column 'year' is int32, and '2013' is a str ... give an int"),
    ({"partition": {"year": 2**40}}, "column 'year' is int32, which cannot hold 1099511627776 ... give another value"),
    ({"partition": {"month": 1}}, "leaves out 'year' ... name the first of these"),
    ({"partition": {"airport": "EWR"}}, "'airport' is not a partition column ... partitioned by ['year', 'month']"),
    ({"partition": "year=2013"}, "give values of first partition columns"),
    ({"partition": {}}, "partition={}: give values"),
    ({"partition": {2013: "year"}}, "give values"),
    ({**STATIC, "base": 2}, "base=2: the log ends at position HEAD ... give one at which this table was read"),
    ({**STATIC, "base": -1}, "base=-1: give a position of the log, 0 or more"),
    ({**STATIC, "base": True}, "base=True: give a position"),
    ({**STATIC, "base": "1"}, "base='1': give a position"),
    ({"base": 1}, "base=1: an append replaces nothing ... leave base out"),
    (
        {**STATIC, "only_partitions": YEAR},
        "replaces the whole table ... partition_overwrite='dynamic' ... or allow more",
    ),
    ({**STATIC, "partition": YEAR, "only_partitions": MONTHS}, "replaces all of partition={'year': 2013}"),
    ({**STATIC, "partition": {"year": 2014}, "only_partitions": YEAR}, "all of partition={'year': 2014}"),
    (
        {"partition": {"year": 2014}, "only_partitions": YEAR},
        "allows nothing there ... name a partition that it allows",
    ),
    ({"partition": {"year": 20130}, "only_partitions": YEAR}, "allows nothing there"),
    ({"only_partitions": {"year": "2013"}}, "only_partitions= ... '2013' is a str; give an int"),
    ({"only_partitions": [YEAR, {"month": 1}]}, "only_partitions={'month': 1} leaves out"),
    ({"only_partitions": []}, "only_partitions=[]: give one part"),
    ({"only_partitions": {}}, "only_partitions={}: give values"),
    ({"only_partitions": "year=2013"}, "only_partitions='year=2013': give one part"),
]


@pytest.mark.parametrize(("named", "told"), REFUSED, ids=str)
@pytest.mark.parametrize("exists", [True, False], ids=["table", "nothing"])
@on_both_loops
async def test_a_call_that_no_table_takes_is_refused_before_anything_is_changed(unstaged, named, told, exists):
    if exists:
        await write(unstaged.backend, OLD)
    error = str(await refusal(unstaged, **{"schema": YEARLY, "partition_by": BY, **named}))
    for part in told.replace("HEAD", str(int(exists))).split(" ... "):
        assert part in error


async def test_a_new_table_that_is_not_to_be_partitioned_has_no_static_partition(staged):
    told = "the table is not partitioned; leave partition out, or give partition_by"
    assert told in str(await refusal(staged, partition={"month": 1}))


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ({"partition_by": ["flight"]}, "the table is partitioned by ['month']"),
        ({"schema": FLIGHTS.append(pa.field("gate", pa.string()))}, "column 'gate' (string) is not in the table"),
        ({"schema": FLIGHTS.remove(0)}, "column 'flight' of the table (int64) is missing"),
        ({"schema": FLIGHTS.set(0, pa.field("flight", pa.string()))}, "column 'flight' is string, the table has int64"),
        ({"schema": FLIGHTS.set(1, pa.field("month", pa.int64()))}, "column 'month' is int64, the table has int32"),
    ],
    ids=str,
)
async def test_a_call_that_this_table_does_not_take_is_refused_with_column_and_types(staged, named, told):
    await committed(staged.backend)
    assert told in str(await refusal(staged, **named))


@pytest.mark.parametrize("path", ["notes.txt", "month=1/part-0.parquet", ".hoodie/20200101000000000.commit"])
async def test_a_place_that_holds_something_else_is_left_as_it_is(staged, path):
    await staged.backend.put(path, b"mine")
    error = await refusal(staged)
    assert isinstance(error, UnsupportedTable)
    assert path in str(error)
    assert "give an empty or new location" in str(error)


@pytest.mark.parametrize(
    "change",
    [
        {"hoodie.table.version": "8"},
        {"hoodie.timeline.layout.version": "2"},
        {"hoodie.table.type": "MERGE_ON_READ"},
        {"hoodie.table.metadata.partitions": "files"},
        {"tallymark.format": "3"},
        {"hoodie.populate.meta.fields": "true"},
    ],
    ids=str,
)
async def test_a_table_of_another_kind_is_left_as_it_is(staged, change):
    await committed(staged.backend)
    found = java_properties.load(staged.objects[PROPERTIES], source="")
    await staged.backend.put(PROPERTIES, java_properties.store({**found, **change}))
    error = await refusal(staged)
    assert isinstance(error, UnsupportedTable)
    assert next(iter(change)) in str(error)


async def test_a_table_with_a_metadata_table_is_left_as_it_is(staged):
    await committed(staged.backend)
    await staged.backend.put(".hoodie/metadata/.hoodie/hoodie.properties", b"")
    assert isinstance(await refusal(staged), UnsupportedTable)
    with pytest.raises(UnsupportedTable, match=r"\.hoodie/metadata"):
        await table(staged.backend).snapshot()


async def test_settings_that_cannot_be_met_end_the_write_and_leave_nothing(staged):
    await committed(staged.backend)
    with pytest.raises(InvalidRequest, match="listens on all interfaces"):
        await write_with(table(staged.backend), markers=MarkerSettings(), service=ServiceSettings(host="0.0.0.0"))
    staged.check_at_rest()


async def test_storage_that_takes_no_writes_is_one_error(staged):
    storage = FaultyBackend(staged.backend, refused("put_new"), refused("put"))
    with pytest.raises(NotPermitted, match="refused"):
        await write_with(table(storage))
    assert staged.objects == {}


def test_an_unknown_scheme_is_one_error():
    with pytest.raises(InvalidPath, match="unknown scheme 'ftp'"):
        open_table("ftp://host/table")


@on_both_loops
async def test_rows_that_do_not_fit_end_the_task_and_the_job_leaves_nothing(store):
    await committed(store.backend)
    before = store.data_files
    wrong = flights().append_column("gate", pa.array(["A"] * 5))
    with pytest.raises(InvalidRequest, match="'gate'"):
        async with begin(store.backend, markers=MarkerSettings()) as job:
            await write_in_thread(job, store.backend, wrong)
    assert store.data_files == before
    store.check_at_rest()


@pytest.mark.parametrize(
    "path", ["../x.parquet", "/x.parquet", "a\nb.parquet", "a/./b.parquet", "", "a.marker.b.parquet"]
)
@pytest.mark.parametrize("kind", ["batched", "direct"])
async def test_a_marker_that_could_leave_the_table_is_refused(staged, path, kind):
    async with begin(staged.backend, markers=MarkerSettings(kind=kind)) as job:
        before = set(staged.objects)
        with pytest.raises(InvalidRequest):
            await mark(job, staged.backend, [path])
        assert set(staged.objects) == before
        await job.commit([])
    staged.check_at_rest()


async def test_what_is_asked_of_a_table_that_is_not_there_is_refused(staged):
    target = table(staged.backend)
    for call in (target.snapshot, target.timeline, target.open_instants, target.rollback, target.clean, target.status):
        with pytest.raises(UnsupportedTable, match="holds no table yet"):
            await call()
    assert staged.objects == {}


TRIALS = f"{HEARTBEAT_FOLDER}/probe-*"


class IgnoresPutIfAbsent(MemoryBackend):
    url = "s3://bucket/flights"

    async def put_new(self, path: str, data: bytes) -> None:
        await self.put(path, data)


@on_both_loops
async def test_no_table_is_made_on_a_store_that_ignores_put_if_absent_and_nothing_is_left():
    backend = IgnoresPutIfAbsent()
    with pytest.raises(UnsupportedTable) as caught:
        async with begin(backend):
            raise AssertionError
    assert isinstance(caught.value, InvalidRequest)
    for part in ("s3://bucket/flights: ", "ignores put-if-absent", "'tallymark doctor s3://bucket/flights'"):
        assert part in str(caught.value)
    assert [entry async for entry in backend.list("")] == []


async def test_the_creation_of_a_table_takes_one_more_round_trip_and_an_existing_table_none(unstaged):
    storage = FaultyBackend(unstaged.backend, *(slow(verb, 1.0) for verb in ("put_new", "delete")))
    begun = anyio.current_time()
    trial = await check_exclusive(storage)
    assert anyio.current_time() - begun == 1.0
    assert storage.paths("put_new") == [trial, trial]
    await committed(unstaged.backend)
    again = FaultyBackend(unstaged.backend)
    await committed(again)
    assert not [path for path in again.paths("put_new") if is_trial(path)]


async def test_it_is_asked_before_anything_else_is_put():
    storage = FaultyBackend(Store(has_staging=True).backend)
    await committed(storage)
    first = [call for call in storage.calls if call.verb in ("put", "put_new")][:3]
    assert [is_trial(call.paths[0]) for call in first] == [True, True, False]
    assert first[2].paths == (PROPERTIES,)


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("fault", [lost_request, lost_answer])
async def test_one_clear_refusal_is_enough_and_an_open_question_is_not(unstaged, fault, nth):
    storage = FaultyBackend(unstaged.backend, fault("put_new", TRIALS, nth=nth))
    try:
        await committed(storage)
    except Unavailable:
        assert PROPERTIES not in unstaged.objects
        await committed(unstaged.backend)
    assert PROPERTIES in unstaged.objects
    await table(unstaged.backend).clean()


async def test_what_an_author_died_over_does_not_keep_the_next_one_and_is_swept_by_a_clean_after_a_lease(unstaged):
    storage = FaultyBackend(unstaged.backend, lost_request("put_new", PROPERTIES), lost_request("delete", TRIALS))
    with pytest.raises(Unavailable):
        await committed(storage)
    (left,) = unstaged.objects
    assert is_trial(left)
    await committed(unstaged.backend)
    assert left in unstaged.objects
    unstaged.clock.pass_lease()
    await table(unstaged.backend).clean()
    unstaged.check_no_bookkeeping()
    unstaged.check_at_rest()


async def test_a_name_that_somebody_swept_in_between_is_no_fault_of_the_store(unstaged):
    """A writer that was stopped between its two puts for longer than a lease."""

    class Swept(FaultyBackend):
        async def put_new(self, path: str, data: bytes) -> None:
            if len(self.paths("put_new")) == 1:
                await anyio.sleep(1000)
            await super().put_new(path, data)
            if len(self.paths("put_new")) <= 2:
                await self.inner.delete([path])

    storage = Swept(unstaged.backend)
    await check_exclusive(storage)
    assert len(set(storage.paths("put_new"))) == 2
