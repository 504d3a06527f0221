"""Upserts and deletes of DataFrames by key: the table afterwards, beside a dict and the engine's path in Arrow."""

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import tallymark
from tallymark import CommitUnknown, ConflictError, InvalidRequest, SizingSettings, StorageOptions, TaskSettings
from tallymark.backends.local import LocalBackend
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.tasks.merge import ACTION, ROW, Action
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.table_key import TableKey
from tallymark.engine.upsert import routing
from tallymark.engine.upsert.locate import FILE, hit_schema
from tallymark.spark_glue import write as write_module
from tallymark.spark_glue.upsert import routing as jvm_routing
from tallymark.spark_glue.upsert import run
from tallymark.spark_glue.upsert.attempts import retried
from tallymark.spark_glue.upsert.hits import Hits, hit_types
from tallymark.spark_glue.upsert.rows import KeyedRows
from tallymark.spark_glue.upsert.shares import SampledKey, planned_rows, shares_of
from tallymark.spark_glue.upsert.stage import RIVAL
from tests.engine.upsert.scene import KEYED, PEOPLE, changed, people, person
from tests.engine.upsert.scene import rows_of as rows_in
from tests.support.storage import exactly_the_committed_files

pytestmark = pytest.mark.spark

COLUMNS = "id long, land string, at long, name string"
FLAGGED = f"{COLUMNS}, gone boolean"
IN_TABLE = {**KEYED, "unique_in": "table"}
IN_TABLE_KEY = TableKey(record_key=("id",), order_by=("at",), unique_in="table")

Row = tuple[Any, ...]


def write(df: DataFrame, table: Path, mode: Any = "upsert", **words: Any) -> Any:
    return tallymark.write(df, str(table), mode=mode, **words)


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal("trio") as portal:
        yield portal


def rows_of(table: Path) -> list[Row]:
    with start_blocking_portal("trio") as portal:
        files = portal.call(tallymark.open_table(table).snapshot).files
    found = [pq.ParquetFile(table / file.path).read() for file in files]
    return sorted((tuple(row.values()) for rows in found for row in rows.to_pylist()), key=repr)


def same(table: Path, *rows: Row) -> None:
    assert rows_of(table) == sorted(rows, key=repr)


@pytest.mark.smoke
@pytest.mark.every_spark
def test_rows_are_updated_inserted_and_deleted_by_their_keys(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    first = write(
        spark.createDataFrame([(1, "A", 5, "a"), (2, "A", 5, "b"), (3, "B", 5, "c")], COLUMNS), table, **KEYED
    )
    assert (first.changes.inserted, first.rows, first.sizing.planned_files) == (3, 3, 2)
    batch = [(1, "A", 6, "x", False), (1, "A", 4, "y", None), (2, "A", 4, "z", None), (3, "B", 5, "", True)]
    df = spark.createDataFrame([*batch, (4, "B", None, "d", None)], FLAGGED)
    second = write(df, table, delete_column="gone", txn="cdc:1")
    same(table, (1, "A", 6, "x"), (2, "A", 5, "b"), (4, "B", None, "d"))
    found = second.changes
    assert (found.inserted, found.updated, found.deleted, found.ignored, found.superseded) == (1, 1, 1, 2, 0)
    assert write(df, table, delete_column="gone", txn="cdc:1").is_rerun
    third = write(spark.createDataFrame([(2, "A"), (4, "A")], "id long, land string"), table, "delete")
    assert (third.changes.deleted, third.changes.ignored, third.rows) == (1, 1, 0)
    same(table, (1, "A", 6, "x"), (4, "B", None, "d"))


class Model:
    """The table as a dict. Null and the empty text are one partition."""

    def __init__(self, unique_in: str) -> None:
        self.unique_in = unique_in
        self.rows: dict[Any, Row] = {}

    def key(self, id_: int, land: str | None) -> Any:
        return id_ if self.unique_in == "table" else (id_, land or None)

    def change(self, batch: Sequence[Row], *, keep: bool = False) -> None:
        greatest: dict[Any, Row] = {}
        for row in sorted(batch, key=_order):
            greatest[self.key(row[0], row[1])] = row
        for key, (id_, land, at, name, gone) in greatest.items():
            stored = self.rows.get(key)
            if stored is not None and (keep or _order((id_, land, at)) < _order(stored)):
                continue
            if gone:
                self.rows.pop(key, None)
            else:
                self.rows[key] = (id_, land or None, at, name)


def _order(row: Row) -> tuple[bool, int]:
    return row[2] is not None, row[2] or 0


def batch_of(seed: int, model: Model, *, first: int = 0) -> list[Row]:
    """Random rows, of which none of one key and order differ, and some are there twice."""
    chance = random.Random(seed)
    found: dict[Any, Row] = {}
    for number in range(30):
        id_, land = chance.randrange(first, first + 14), chance.choice([None, "", "A", "B", "a/b"])
        at = chance.choice([None, *range(12)])
        found.setdefault((model.key(id_, land), at), (id_, land, at, str(number), chance.choice([True, False, None])))
    rows = list(found.values())
    return rows + chance.sample(rows, 4)


@pytest.mark.every_spark
@pytest.mark.parametrize("unique_in", [pytest.param("partition", marks=pytest.mark.release), "table"])
def test_batches_leave_what_a_dict_has_and_what_the_engine_does_in_arrow(
    spark: SparkSession, tmp_path: Path, portal: BlockingPortal, unique_in: str
) -> None:
    table, other, model = tmp_path / "t", MemoryBackend(), Model(unique_in)

    def step(batch: Sequence[Row], mode: str = "upsert", *, keep: bool = False, **words: Any) -> None:
        df = spark.createDataFrame(batch, FLAGGED)
        persons = [person(*row[:4]) for row in batch]
        flags = pa.array([row[4] for row in batch], pa.bool_())
        if mode != "upsert" or keep:
            when = {"when_matched": "keep"} if keep else {}
            ours = write(df.drop("gone"), table, mode, **when, **words)
            theirs = portal.call(partial(changed, other, *persons, mode=mode, keep=keep, **words))
        else:
            ours = write(df, table, delete_column="gone", **words)
            theirs = portal.call(partial(changed, other, *persons, delete=flags, **words))
        if mode != "append":
            counted = ("inserted", "updated", "deleted", "ignored", "superseded")
            assert [asdict(ours.changes)[name] for name in counted] == [asdict(theirs.changes)[n] for n in counted]
        in_arrow = [tuple(row.values()) for row in portal.call(rows_in, other)]
        assert rows_of(table) == sorted(in_arrow, key=repr)

    for seed in range(2):
        model.change(batch := batch_of(seed, model, first=7 * seed))
        step(batch, **({**KEYED, "unique_in": unique_in} if not seed else {}))
        same(table, *model.rows.values())
    step([(id_, "C", 1, "double", None) for id_ in (1, 7, 8)], mode="append")
    step([(id_, "C", 2, "triple", None) for id_ in (7, 8)], mode="append")
    model.change(healing := [*batch_of(2, model), *((id_, "C", 100, "healed", None) for id_ in (1, 7, 8))])
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        step(healing)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    same(table, *model.rows.values())
    model.change(kept := [(*row[:4], None) for row in batch_of(3, model, first=10)], keep=True)
    step(kept, keep=True)
    same(table, *model.rows.values())
    gone = [(id_, land, None, "", True) for id_ in (1, 8, 9, 99) for land in ("A", "C")]
    model.change([(id_, land, 1000, "", True) for id_, land, *_ in gone])
    step(gone, mode="delete")
    same(table, *model.rows.values())


def test_a_plan_of_a_write_by_key_looks_its_keys_up_and_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    df = spark.createDataFrame([(id_, "A", 1, "", False) for id_ in range(9)], FLAGGED)
    new = tallymark.plan(df, table, mode="upsert", delete_column="gone", **KEYED)
    assert (new.rows, new.files, new.is_created, table.exists()) == (9, 1, True, False)
    write(df, table, delete_column="gone", **KEYED)
    before = exactly_the_committed_files(table)
    batch = spark.createDataFrame([(id_, "A", 2, "") for id_ in range(7, 12)], COLUMNS)
    plan = tallymark.plan(batch, table, mode="upsert")
    assert plan.sizing is not None
    assert (plan.rows, len(plan.sizing.fills), plan.sizing.changed_rows) == (3, 1, 2)
    assert exactly_the_committed_files(table) == before
    assert tallymark.plan(batch.select("id", "land"), table, mode="delete").partitions[0].changed_rows == 2


LANDS = ("A", "B", None)
FILES = [
    DataFile(f"land={land or '__HIVE_DEFAULT_PARTITION__'}", f"{place}_2013010100000000{age}.parquet", 40, 1000)
    for land in LANDS
    for place, age in enumerate((3, 7))
]
TASKS = [[PlannedFile(file.partition, 5, 1200, file, updates=3) for file in FILES[start::2]] for start in (0, 1)]


@pytest.mark.parametrize(
    ("unique_in", "case"),
    [
        ("partition", "update"),
        ("table", "update"),
        pytest.param("table", "keep", marks=pytest.mark.release),
        pytest.param("table", "delete", marks=pytest.mark.release),
    ],
)
def test_the_jvm_decides_as_the_engine_does(spark: SparkSession, unique_in: Any, case: str) -> None:
    ticket = ticket_of(TableKey(record_key=("id",), order_by=("at",), unique_in=unique_in))
    chance, batch = random.Random(7), batch_of(7, Model(unique_in))
    if case == "delete":  # needs no columns of order
        batch = [(id_, land, None, "", None) for id_, land, *_ in batch]
    found: list[dict[str, Any]] = []
    for number, file in enumerate(FILES):
        land = LANDS[number // 2]
        for row, id_ in enumerate(chance.sample(range(14), 7)):
            hit = {"id": id_, "land": land, "at": chance.choice([None, *range(12)]), FILE: file.path, ROW: row}
            found.append({name: hit[name] for name in hit_schema(ticket).names})
    hits = pa.Table.from_pylist(found, schema=hit_schema(ticket))
    flags: Any = case == "delete" or pa.array([row[4] and case == "update" for row in batch], pa.bool_())
    in_arrow = routing.routed(
        ticket,
        people(*(person(*row[:4]) for row in batch)),
        hits.to_batches(),
        TASKS,
        keep=case == "keep",
        delete=flags,
    )
    request = {
        "update": WriteRequest.of("upsert", delete_column="gone"),
        "keep": WriteRequest.of("upsert", when_matched="keep"),
        "delete": WriteRequest.of("delete"),
    }[case]
    rows = KeyedRows(spark.createDataFrame(batch, FLAGGED), ticket, request)
    paths = [file.path for file in FILES]
    numbered = [tuple((hit | {FILE: paths.index(hit[FILE])}).values()) for hit in found]
    stored = Hits(spark.createDataFrame(numbered, hit_types(ticket)), paths, is_single=False)
    shares = shares_of(planned_rows(TASKS), [])
    sent = jvm_routing.routed(rows, stored, TASKS, shares, keep=case == "keep")
    assert sent.rdd.getNumPartitions() == len(TASKS)
    in_jvm = [row.asDict() for row in sent.withColumn("task", f.spark_partition_id()).collect()]
    expected = [{**row, "task": task} for task, part in enumerate(in_arrow) for row in part.to_pylist()]
    assert sorted(map(decision, in_jvm), key=repr) == sorted(map(decision, expected), key=repr)
    assert (Action.FORCE_DELETE in {row[ACTION] for row in in_jvm}) == (case != "keep")


def ticket_of(key: TableKey) -> WriteTicket:
    return WriteTicket(
        url="memory:",
        options=StorageOptions(),
        instant="",
        base=0,
        schema=PEOPLE,
        partition_by=("land",),
        staging="",
        marker_kind="direct",
        service=None,
        settings=TaskSettings(),
        max_file_bytes=1 << 20,
        key=key,
    )


def decision(row: dict[str, Any]) -> Row:
    """What both have decided. Rows without a position are divided among tasks in another way."""
    values = (row["at"], row["name"]) if row[ACTION] in (Action.WRITE, Action.DELETE) else ()
    return (None if row[ROW] is None else row["task"], row["id"], row["land"], row[ROW], row[ACTION], *values)


def test_only_the_greatest_rows_of_a_key_may_be_rivals(spark: SparkSession) -> None:
    batch = [(1, "A", 1, "", False), (1, "B", 1, "", False), (2, "A", 1, "", False), (2, "A", 1, "", True)]
    batch += [(3, "A", 1, "", False), (3, "B", 1, "", False), (3, "A", 2, "", False)]
    batch += [(4, "A", 1, "", True), (4, "B", 1, "", True), (5, "A", 1, "", False), (5, "A", 1, "", False)]
    request = WriteRequest.of("upsert", delete_column="gone")
    rows = KeyedRows(spark.createDataFrame(batch, FLAGGED), ticket_of(IN_TABLE_KEY), request)
    sent = jvm_routing.routed(rows, None, [], {}, keep=False)
    assert {row.id for row in sent.where(f.col(ACTION) == RIVAL).collect()} == {1, 2}


KEYS = {
    "text": "IF(id % 3 = 0, concat('ünïcødé-🦆-', md5(string(id))), md5(string(id)))",
    "at": "timestamp_micros(1356998400000000 + (id * 7919 % 3000 - 1500) * 86399000001)",
    "price": "CAST((id * 7919 % 3000 - 1500) / 4 AS DECIMAL(12,2))",
}


@pytest.mark.parametrize(
    "record_key",
    [
        pytest.param(["text"], marks=pytest.mark.release),
        pytest.param(["at"], marks=pytest.mark.release),
        ["price", "text"],
    ],
)
def test_keys_of_every_type_are_found_and_new_ones_keep_their_order(
    spark: SparkSession, tmp_path: Path, record_key: list[str]
) -> None:
    def batch(start: int, stop: int, version: int) -> DataFrame:
        keys = [f"{KEYS[name]} AS {name}" for name in KEYS]
        return spark.range(start, stop, 1, 3).selectExpr(
            "id", *keys, f"{version} AS version", "md5(string(-id)) AS payload"
        )

    table = tmp_path / "t"
    words: dict[str, Any] = {
        "sizing": SizingSettings(max_file_bytes=30_000, small_file_bytes=25_000),
        "tasks": TaskSettings(row_group_bytes=20_000),
    }
    write(batch(0, 2000, 1), table, record_key=record_key, readers="directory", **words)
    ranges = []
    for path in exactly_the_committed_files(table):
        rows = pq.ParquetFile(table / path).read(columns=record_key).to_pylist()
        keys = [tuple(row[name] for name in record_key) for row in rows]
        ranges.append((min(keys), max(keys)))
    ranges.sort()
    assert len(ranges) >= 3
    assert all(one[1] < other[0] for one, other in pairwise(ranges))
    result = write(batch(1000, 3000, 2), table, **words)
    assert (result.changes.updated, result.changes.inserted) == (1000, 1000)
    assert [(row[0], row[4]) for row in rows_of_ids(table)] == [(n, 1 if n < 1000 else 2) for n in range(3000)]


def rows_of_ids(table: Path) -> list[Row]:
    return sorted(rows_of(table), key=lambda row: row[0])


def test_new_keys_are_divided_by_the_sample() -> None:
    planned = {"": [(0, 10), (1, 20), (2, 10)], "a": [(3, 0)], "b": [(1, 5), (2, 5)]}
    shares = shares_of(planned, [SampledKey("", (number,), 1 + number % 2) for number in reversed(range(100))])
    assert [(share.tasks, share.bounds) for share in shares.values()] == [
        ([0, 1, 2], [(26,), (76,)]),
        ([3], ()),
        ([1], ()),
    ]


def test_a_key_that_is_there_is_refused_with_fail(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(spark.createDataFrame([(number, "A", 1, "") for number in range(9)], COLUMNS), table, **KEYED)
    again = spark.createDataFrame([(number, "A", 2, "") for number in range(2, 20)], COLUMNS)
    with pytest.raises(InvalidRequest, match=r"^7 rows of the table have a key of df, such as (id=\d; ){4}id=\d, and"):
        write(again, table, when_matched="fail")
    assert [at for _, _, at, _ in rows_of(table)] == [1] * 9


def test_a_delete_is_as_new_as_its_own_partition_says(spark: SparkSession, tmp_path: Path) -> None:
    stored = spark.createDataFrame([(1, "A", 5, ""), (2, "C", 5, ""), (3, "B", 5, "")], COLUMNS)
    write(stored, tmp_path, **{**IN_TABLE, "order_by": ["land", "at"]})
    gone = spark.createDataFrame([(1, "B", 0, "", True), (2, "B", 9, "", True), (3, "B", 4, "", True)], FLAGGED)
    write(gone, tmp_path, delete_column="gone")
    same(tmp_path, (2, "C", 5, ""), (3, "B", 5, ""))


def test_a_move_stays_where_the_write_is_allowed(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(spark.createDataFrame([(1, "A", 1, "a"), (2, "B", 1, "b")], COLUMNS), table, **IN_TABLE)
    df = spark.createDataFrame([(1, 2, "moved"), (3, 2, "new")], "id long, at long, name string")
    with pytest.raises(InvalidRequest, match="only_partitions"):
        write(df.withColumn("land", f.lit("B")), table, only_partitions={"land": "B"})
    write(df.where("id = 3"), table, partition={"land": "B"})
    same(table, (1, "A", 1, "a"), (2, "B", 1, "b"), (3, "B", 2, "new"))
    tied = spark.createDataFrame([(7, "A", 2, ""), (8, "A", 2, ""), (8, "B", 2, "")], COLUMNS)
    with pytest.raises(InvalidRequest, match="order_by does not decide between them: id=8; add a column"):
        write(tied, table)


def test_rows_that_differ_when_they_are_computed_again_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    anything = f.udf(lambda: str(uuid.uuid4()), "string").asNondeterministic()
    df = spark.createDataFrame([(1, "A", 1), (2, "B", 1)], "id long, land string, at long").withColumn(
        "name", anything()
    )
    with pytest.raises(InvalidRequest, match="the input was not the same when it was computed again"):
        write(df, tmp_path / "t", **KEYED)
    assert not exactly_the_committed_files(tmp_path / "t")


def test_after_a_conflict_the_whole_job_runs_again(
    spark: SparkSession, tmp_path: Path, portal: BlockingPortal, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    write(spark.createDataFrame([(1, "A", 1, "a"), (2, "A", 1, "b")], COLUMNS), table, **KEYED)
    runs: list[str] = []

    def contested(df: DataFrame, job: Any, *given: Any) -> Any:
        reports = run.run_changes(df, job, *given)
        runs.append(job.instant)
        if len(runs) == 1:
            portal.call(partial(changed, LocalBackend(table), person(2, "A", 2, "theirs")))
        return reports

    monkeypatch.setattr(write_module, "run_changes", contested)
    df = spark.createDataFrame([(1, "A", 2, "ours"), (3, "A", 1, "ours")], COLUMNS)
    assert write(df, table, attempts=2).instant == runs[-1]
    same(table, (1, "A", 2, "ours"), (2, "A", 2, "theirs"), (3, "A", 1, "ours"))
    assert len({*runs}) == 2


def test_only_a_conflict_is_followed_by_another_attempt() -> None:
    def ending_with(*errors: Exception | None) -> list[int]:
        runs = iter(enumerate(errors))

        def attempt() -> int:
            number, error = next(runs)
            if error is not None:
                raise error
            return number

        return [retried(attempt, 3)]

    conflict = ConflictError("", partition=None, winner="")
    assert ending_with(conflict, conflict, None) == [2]
    with pytest.raises(ConflictError):
        ending_with(conflict, conflict, conflict, None)
    with pytest.raises(CommitUnknown):
        ending_with(conflict, CommitUnknown("", instant=""), None)


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "missing flag": (COLUMNS, {"delete_column": "gone"}, "delete_column='gone': df has no columns of that name"),
    "flag of another type": (COLUMNS, {"delete_column": "name"}, "delete_column='name' is string in df"),
    "flag that is stored": (
        "id long, land string, at long, name boolean",
        {"delete_column": "name"},
        "delete_column='name' is a column of the table",
    ),
    "flag of a delete": (FLAGGED, {"mode": "delete", "delete_column": "gone"}, "delete_column='gone' is for mode='ups"),
    "key with a collation": (
        "id long, land string, at long, name string collate UTF8_LCASE",
        {},
        "'name' has the coll",
    ),
    "column that the table lacks": (FLAGGED, {"mode": "delete"}, "column 'gone'.* is not in the table"),
    "key of another type": ("id int, land string, name string", {"mode": "delete"}, "column 'id'"),
    "key that is missing": ("land string, at long, name string", {"mode": "delete"}, "column 'id' of the table"),
    "partition that is missing": ("id long, name string", {"mode": "delete"}, "column 'land' of the table"),
    "attempts of an append": (COLUMNS, {"mode": "append", "attempts": 2}, "attempts=2 is for mode='upsert'"),
    "no attempts": (COLUMNS, {"attempts": 0}, "attempts=0: give a whole number"),
}


@pytest.fixture(scope="module")
def keyed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that no test here changes, of a composite key."""
    path = tmp_path_factory.mktemp("refused") / "t"
    write(spark.createDataFrame([(1, "A", 1, "a")], COLUMNS), path, **{**KEYED, "record_key": ["id", "name"]})
    return path


@pytest.mark.parametrize("case", REFUSED)
def test_what_fits_no_write_by_key_is_refused(spark: SparkSession, keyed: Path, case: str) -> None:
    columns, words, message = REFUSED[case]
    if "collate" in columns and spark.version < "4":
        pytest.skip("Spark 3 has no collations")
    with pytest.raises(InvalidRequest, match=message):
        write(spark.createDataFrame([], columns), keyed, **words)


def test_a_key_of_a_new_table_is_checked_before_there_is_one(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, 1.0)], "id long, price double")
    with pytest.raises(InvalidRequest, match="record_key names 'price', which is double"):
        write(df, tmp_path / "t", record_key="price")
    with pytest.raises(InvalidRequest, match="there is no table to delete from"):
        write(df, tmp_path / "t", "delete")
    with pytest.raises(InvalidRequest, match="changes of one key differ and have no order_by"):
        write(df.union(df.withColumn("price", f.lit(2.0))), tmp_path / "u", record_key="id", readers="directory")
    assert not (tmp_path / "t").exists()
