"""Routing of an upsert or delete in the JVM: what is to be done with each row, and which task does it.

The decisions are those of ``engine.upsert.routing``. All rows of a key reach one task, whose merge decides which of
them wins. As in ``routing``, the task of a row depends on the row, the hits and the plan alone.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from tallymark.engine.partitions.path import partition_values
from tallymark.engine.tasks.changes import HASH
from tallymark.engine.tasks.merge import ACTION, ROW, Action
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.upsert.keys import key_of
from tallymark.spark_glue.routing import Tasks
from tallymark.spark_glue.task_key import task_key
from tallymark.spark_glue.upsert.hits import Hits, same_columns
from tallymark.spark_glue.upsert.rows import KeyedRows, spark_types
from tallymark.spark_glue.upsert.shares import KeyShares
from tallymark.spark_glue.upsert.stage import RIVAL, hit_columns


def routed(
    rows: KeyedRows, hits: Hits | None, tasks: Tasks, shares: Mapping[str, KeyShares], *, keep: bool
) -> DataFrame:
    """Return the changes, sorted, each in the Spark partition whose number is that of its task.

    ``hits`` are those of all lookups; None if there are none. ``shares`` are the tasks of new keys
    by partition. With ``keep`` a row whose key is there has no effect.
    """
    changes = _all_new(rows) if hits is None else _beside(rows, hits, tasks, keep=keep)
    if not tasks:
        sent = changes.repartition(*rows.key)
    elif len(tasks) == 1:
        sent = changes.repartition(1)
    else:
        sent = _keyed(rows, changes, shares).repartition(len(tasks), "task_key")
    order = [
        *(f.col(name).asc_nulls_first() for name in rows.partition),
        f.col("row").asc_nulls_last(),
        *map(f.col, rows.key),
        *(f.col(name).asc_nulls_first() for name in rows.order),
    ]
    own = {ROW: "row", ACTION: "action", HASH: "hash"}
    return sent.sortWithinPartitions(*order).select(*rows.columns.values(), *own.values()).toDF(*rows.columns, *own)


def _all_new(rows: KeyedRows) -> DataFrame:
    """Return the changes where the table has none of the keys."""
    return _decided(rows).withColumns({"row": f.lit(None).cast("long"), "file_key": f.lit(None).cast("int")})


def _decided(rows: KeyedRows) -> DataFrame:
    """Return the rows with ``is_first``; of those of a key that may move, only the greatest by order have an effect.

    ``is_first`` is true for one of these: its stored row is deleted once, however often the same row is in the batch.
    """
    found = rows.changes().withColumn("is_first", f.lit(True))
    if not rows.is_anywhere or rows.is_delete:
        return found
    of_key, order = Window.partitionBy(*rows.key), _struct(rows.order)
    found = found.withColumns(
        {
            "is_top": order == f.max(order).over(of_key),
            "is_first": f.row_number().over(of_key.orderBy(order.desc())) == 1,
        }
    )
    partition, action = (f.when(f.col("is_top"), column) for column in (_struct(rows.partition), f.col("action")))
    is_elsewhere, is_mixed = (
        f.min(column).over(of_key) != f.max(column).over(of_key) for column in (partition, action)
    )
    is_rival = is_mixed | (is_elsewhere & (f.col("action") == Action.WRITE.value))
    decided = f.when(~f.col("is_top"), Action.IGNORE.value).when(is_rival, RIVAL).otherwise(f.col("action"))
    return found.withColumn("action", decided.cast("tinyint"))


def _beside(rows: KeyedRows, hits: Hits, tasks: Tasks, *, keep: bool) -> DataFrame:
    """Return the changes of rows some of whose keys are in the table.

    Of several hits of a key, the newest counts as its row, and all others are deleted; with ``keep``, which rewrites no
    file, they remain.
    """
    ticket, hit = rows.ticket, hit_columns(rows.ticket)
    same = same_columns(ticket)
    found = hits.found(ticket).withColumn("file_key", hits.of_file(ticket, _file_keys(tasks)))
    if hits.is_single:
        return _joined(rows, found, hit, same, keep=keep)
    newest = Window.partitionBy(*(hit[name] for name in same)).orderBy(hits.of_file(ticket, hits.ages()), hit[ROW])
    ranked = found.withColumn("number", f.row_number().over(newest))
    changes = _joined(rows, ranked.where("number = 1"), hit, same, keep=keep)
    if keep:
        return changes
    others = ranked.where("number > 1").select(
        *(f.col(hit[name]).alias(rows.columns[name]) for name in dict.fromkeys([*same, *ticket.partition_by])),
        f.col(hit[ROW]).alias("row"),
        "file_key",
        f.lit(Action.FORCE_DELETE.value).cast("tinyint").alias("action"),
    )
    return changes.unionByName(others, allowMissingColumns=True)


def _joined(
    rows: KeyedRows, stored: DataFrame, hit: Mapping[str, str], same: Iterable[str], *, keep: bool
) -> DataFrame:
    """Return the rows with their actions, and the deletes of rows that move to another partition."""
    pairs = {name: (f.col(rows.columns[name]), f.col(hit[name])) for name in same}
    key = key_of(rows.ticket).record_key  # has no nulls, and Spark joins faster where it need not compare them
    matches = (one == other if name in key else one.eqNullSafe(other) for name, (one, other) in pairs.items())
    found = _decided(rows).join(stored, reduce(and_, matches), "left")
    action, is_hit = f.col("action"), f.col(hit[ROW]).isNotNull()
    is_delete = action == Action.DELETE.value
    is_ignored = action == Action.IGNORE.value
    if keep:
        is_ignored |= is_hit
    is_moved = f.lit(False)
    if rows.is_anywhere:
        is_away = is_hit & (_struct(rows.partition) != _struct(hit[name] for name in rows.ticket.partition_by))
        if rows.order and not rows.is_delete:
            stored_order = _struct(hit[name] for name in key_of(rows.ticket).order_by)
            is_ignored |= is_hit & (is_away | is_delete) & (_struct(rows.order) < stored_order)
        is_moved = is_away & ~is_ignored & (action == Action.WRITE.value)
    decided = f.when(is_ignored & (action != RIVAL), Action.IGNORE.value)
    if rows.is_anywhere:  # its order is decided here: where the row is, the partition's columns are other ones
        decided = decided.when(is_delete, Action.FORCE_DELETE.value)
    decided = decided.otherwise(action)
    found = found.withColumns(
        {"is_here": is_hit & ~is_ignored & ~is_moved, "is_gone": is_moved & f.col("is_first"), "action": decided}
    )
    return _with_moves(rows, found, hit)


def _with_moves(rows: KeyedRows, found: DataFrame, hit: Mapping[str, str]) -> DataFrame:
    """Return the changes in their final columns; of a row that moves, also the delete of the stored one."""
    if rows.is_anywhere:
        copies = f.when(f.col("is_gone"), f.array(f.lit(False), f.lit(True))).otherwise(f.array(f.lit(False)))
        found = found.withColumn("is_gone", f.explode(copies))
    is_gone = f.col("is_gone")
    is_there = is_gone | f.col("is_here")
    columns = {
        "row": f.when(is_there, f.col(hit[ROW])),
        "file_key": f.when(is_there, f.col("file_key")),
        "hash": f.when(~is_gone, f.col("hash")),
        "action": f.when(is_gone, Action.FORCE_DELETE.value).otherwise(f.col("action")).cast("tinyint"),
    }
    for name, column in rows.columns.items():
        value = f.col(column)
        if name in rows.ticket.partition_by:
            value = f.when(is_there, f.col(hit[name])).otherwise(value)  # a delete goes where the row is
        elif column not in rows.key:
            value = f.when(~is_gone, value)
        columns[column] = value
    return found.select(*(value.alias(name) for name, value in columns.items()))


def _file_keys(tasks: Tasks) -> dict[str, int]:
    """Return the ``task_key`` of each file with updates."""
    return {
        file.fill.path: task_key(number)
        for number, files in enumerate(tasks)
        for file in files
        if file.fill is not None and file.updates
    }


def _keyed(rows: KeyedRows, changes: DataFrame, shares: Mapping[str, KeyShares]) -> DataFrame:
    """Return the changes with ``task_key``: that of their file's task, or of the task that takes new rows of their key.

    Rows without effect are spread; those of partitions for which no task has a file stay together.
    """
    matches = (f.col(name).eqNullSafe(f.col(f"plan{place}")) for place, name in enumerate(rows.partition))
    plan = f.broadcast(_plan(changes.sparkSession, rows.ticket, shares))
    found = changes.join(plan, reduce(and_, matches, f.lit(True)), "left")
    own = f.get("keys", _place(_struct(rows.key), max((len(share.bounds) for share in shares.values()), default=0)))
    planned = f.coalesce("file_key", own, f.hash(*(rows.partition or rows.key)))
    is_idle = f.col("row").isNull() if rows.is_delete else f.col("action") == Action.IGNORE.value
    key = f.when(is_idle, f.hash(*rows.key)).otherwise(planned)
    return found.select(*rows.columns.values(), "row", "action", "hash", key.alias("task_key"))


def _place(key: Column, count: int) -> Column:
    """Return how many of the ascending ``bounds``, of which there are at most ``count``, the key has reached."""
    if not count:
        return f.lit(0)
    steps = f.array(*(f.lit(1 << power) for power in reversed(range(count.bit_length()))))

    def further(place: Column, step: Column) -> Column:
        return f.when(f.get("bounds", place + step - 1) <= key, place + step).otherwise(place)

    return f.aggregate(steps, f.lit(0), further)


def _plan(session: SparkSession, ticket: WriteTicket, shares: Mapping[str, KeyShares]) -> DataFrame:
    """Return the tasks and bounds of each partition."""
    schema = ticket.schema
    partition = spark_types(schema.field(name) for name in ticket.partition_by)
    key = spark_types(schema.field(name) for name in key_of(ticket).record_key)
    bound = StructType([StructField(f"part{place}", type_) for place, type_ in enumerate(key)])
    fields = [StructField(f"plan{place}", type_) for place, type_ in enumerate(partition)]
    fields += [StructField("bounds", ArrayType(bound)), StructField("keys", ArrayType(IntegerType()))]
    found = [
        (
            *partition_values(path, schema, ticket.partition_by).values(),
            list(share.bounds),
            [task_key(task) for task in share.tasks],
        )
        for path, share in shares.items()
    ]
    return session.createDataFrame(found, StructType(fields))


def _struct(columns: Iterable[str]) -> Column:
    """Return the columns as one value, which Spark compares column by column, null as the least."""
    parts = [f.col(name).alias(f"part{place}") for place, name in enumerate(columns)]
    return f.struct(*(parts or [f.lit(0).alias("part0")]))
