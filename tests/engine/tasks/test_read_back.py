"""Readers that nobody here wrote see what was handed in."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallymark.engine.partitions.path import partition_path
from tallymark.engine.tasks.report import TaskReport
from tests.engine.tasks.scene import local, memory, schema_of, tables, ticket, write
from tests.support import arrow_types
from tests.support.examples import examples

NASTY = [
    None,
    "",
    "01",
    " ",
    " lead and trail ",
    "caf\u00e9",
    "cafe\u0301",
    "\u65e5\u672c\U0001f600",
    "a/b",
    "../..",
    "a=b",
    "100%",
    "%2F",
    "'q'",
    '"d"',
    "l1\nl2\r\t",
    "nul\0",
    "{x}[y]^z*?#:\\",
    "null",
    "NaN",
    "a+b&c;d",
]

PARTITIONS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), NASTY),
    (pa.large_string(), NASTY),
    (pa.int8(), [None, -128, -5, 0, 127]),
    (pa.int64(), [None, -(2**63), 0, 2**63 - 1]),
    (pa.bool_(), [None, True, False]),
    (pa.date32(), [None, date(1, 1, 1), date(2013, 1, 1), date(9999, 12, 31)]),
    (pa.decimal128(10, 2), [None, Decimal("-0.10"), Decimal("0.00"), Decimal("100.00")]),
    (pa.decimal128(38, 18), [None, Decimal("-1E-18"), Decimal("12345678901234567890.500000000000000000")]),
]


def asked(query: str, **parameters) -> Any:
    return duckdb.sql(query, params=parameters)


def written(kind: pa.DataType, values: list[Any], tmp_path) -> tuple[pa.Schema, TaskReport]:
    """Numbered rows, partitioned by these values."""
    schema = schema_of(row=pa.int64(), p=kind)
    batch = pa.record_batch([list(range(len(values))), pa.array(values, kind)], schema=schema)
    return schema, write(ticket(schema, "p"), [batch], local(tmp_path))


@pytest.mark.parametrize(
    ("kind", "values"), PARTITIONS, ids=lambda case: str(case) if isinstance(case, pa.DataType) else ""
)
def test_partition_values_of_every_kind_read_equal_in_pyarrow_and_duckdb(kind, values, tmp_path):
    _, report = written(kind, values * 2, tmp_path)
    expected = [(row, value if value != "" else None) for row, value in enumerate(values * 2)]
    paths = [str(tmp_path / "table" / file.path) for file in report.files]
    from_arrow = pa.concat_tables(pq.ParquetFile(path).read() for path in paths).sort_by("row")
    from_duckdb = asked("SELECT row, p FROM read_parquet($paths, hive_partitioning=false) ORDER BY row", paths=paths)
    assert list(zip(*from_arrow.to_pydict().values(), strict=True)) == expected
    assert from_duckdb.fetchall() == expected
    assert {file.partition for file in report.files} == {partition_path(["p"], [value]) for value in values}


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.date32(), pa.bool_()], ids=str)
def test_readers_that_take_the_value_from_the_path_find_the_one_in_the_file(kind, tmp_path):
    values = next(values for of, values in PARTITIONS if of == kind)
    schema, _ = written(kind, values, tmp_path)
    expected = [value if value != "" else None for value in values]

    root = tmp_path / "table"
    hive = ds.HivePartitioning(pa.schema([("p", kind)]))
    paths = [path.as_posix() for path in root.glob("*/*.parquet")]
    in_arrow = ds.dataset(paths, partitioning=hive, partition_base_dir=root.as_posix(), schema=schema, format="parquet")
    assert in_arrow.to_table().sort_by("row").column("p").to_pylist() == expected
    name = {pa.string(): "VARCHAR", pa.int64(): "BIGINT", pa.date32(): "DATE", pa.bool_(): "BOOLEAN"}[kind]
    in_duckdb = asked(
        f"SELECT p FROM read_parquet($glob, hive_partitioning=true, hive_types={{'p': {name}}}) ORDER BY row",
        glob=f"{root}/*/*.parquet",
    )
    assert [value for (value,) in in_duckdb.fetchall()] == expected


def test_columns_of_every_common_type_read_equal_in_pyarrow_and_duckdb(tmp_path):
    columns = {
        "id": pa.array([1, 2, None], pa.int16()),
        "x": pa.array([0.1, None, -1e300]),
        "text": pa.array(["", "\u00e9", None]),
        "raw": pa.array([b"\0", None, b""]),
        "price": pa.array([Decimal("-1.50"), None, Decimal("99999999.99")], pa.decimal128(10, 2)),
        "day": pa.array([date(2013, 1, 1), None, date(1, 1, 1)]),
        "clock": pa.array([time(1, 2, 3, 4), None, time(0)], pa.time64("us")),
        "local": pa.array([datetime(2013, 1, 1, 5, 17, 0, 1), None, datetime(1, 1, 1)], pa.timestamp("us")),  # noqa: DTZ001
        "at": pa.array([datetime(2013, 1, 1, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
        "tags": pa.array([["a", None], None, []], pa.list_(pa.string())),
        "place": pa.array([{"city": "NYC", "zip": 1}, None, {"city": None, "zip": None}]),
    }
    batch = pa.record_batch(columns)
    storage = local(tmp_path)
    report = write(ticket(batch.schema), [batch], storage)
    (path,) = (str(tmp_path / "table" / file.path) for file in report.files)
    assert pq.read_table(path).equals(pa.Table.from_batches([batch]))
    assert (
        asked("SELECT * FROM read_parquet($path)", path=path)
        .to_arrow_table()
        .cast(batch.schema)
        .equals(pa.Table.from_batches([batch]))
    )


tables_of_any_type = arrow_types.schemas.filter(lambda schema: "p" not in map(str.lower, schema.names)).flatmap(
    lambda schema: st.tuples(
        st.just(schema.append(pa.field("p", pa.int8()))),
        st.lists(st.tuples(arrow_types.rows_of(schema), st.integers(0, 2)), min_size=1, max_size=8),
    )
)


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(tables_of_any_type, st.booleans())
def test_every_type_of_a_table_reads_equal_with_schema_and_metadata(case, is_partitioned):
    schema, rows = case
    batch = pa.RecordBatch.from_pylist([{**row, "p": p} for row, p in rows], schema=schema)
    storage = memory(has_staging=True)
    report = write(ticket(schema, *(["p"] if is_partitioned else [])), [batch], storage)
    for partition, table in tables(storage, report):
        mask = (
            pc.equal(batch.column("p"), pa.scalar(int(partition.removeprefix("p=")), pa.int8()))
            if partition
            else pa.array([True] * len(rows))
        )
        assert table.schema.equals(schema)  # with metadata pyarrow also compares names of map entries, its own choice
        assert (table.schema.metadata or {}) == (schema.metadata or {})
        assert table.equals(pa.Table.from_batches([batch.filter(mask)]))
    assert report.rows == len(rows)
