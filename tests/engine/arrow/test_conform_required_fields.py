import io
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tallymark.engine.arrow.conform import conform, settle_required
from tallymark.engine.errors import InvalidRequest

KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "int": (pa.int32(), 7),
    "bool": (pa.bool_(), True),
    "string": (pa.string(), "seven"),
    "decimal": (pa.decimal128(9, 2), 7),
    "list": (pa.list_(pa.int32()), [7, None]),
    "map": (pa.map_(pa.string(), pa.int32()), [("a", 7)]),
    "struct": (pa.struct([pa.field("x", pa.int32(), nullable=False)]), {"x": 7}),
}

OFFSETS: Any = pa.array([0, 2, 2, 4], pa.int32())
KEYS: Any = pa.array(["a", "b", "a", "b"])


def as_spark_puts_it(kind: pa.DataType, values: list[dict[str, Any] | None], field: str = "sure") -> Any:
    """A struct of one required field, with nulls below its nulls, at any depth."""
    below = [None if value is None else value[field] for value in values]
    child: Any = as_spark_puts_it(kind.field(0).type, below, "x") if pa.types.is_struct(kind) else pa.array(below, kind)
    mask = pa.array([value is None for value in values])
    return pa.StructArray.from_arrays([child], fields=[pa.field(field, kind, nullable=False)], mask=mask)


def through_parquet(column: Any) -> list[Any]:
    sink = io.BytesIO()
    pq.write_table(pa.table({"deep": column}), sink)
    found: list[Any] = pq.read_table(sink).column("deep").to_pylist()
    return found


@pytest.mark.parametrize("name", KINDS)
def test_nulls_below_a_null_struct_are_no_missing_values(name):
    kind, value = KINDS[name]
    values = [{"sure": value}, None, {"sure": value}]
    column = as_spark_puts_it(kind, values)
    assert column.field(0).null_count == 1
    settled = settle_required(column, "deep")
    settled.validate(full=True)
    assert settled.type == column.type
    assert settled.to_pylist() == column.to_pylist()
    assert through_parquet(settled) == column.to_pylist()
    assert settle_required(column.slice(1), "deep").to_pylist() == column.to_pylist()[1:]


@pytest.mark.parametrize("name", KINDS)
def test_a_null_in_a_struct_that_is_there_is_refused_by_path(name):
    column = as_spark_puts_it(KINDS[name][0], [{"sure": None}, None])
    with pytest.raises(InvalidRequest, match=r"column 'deep\.sure' has 1 nulls in structs that are there"):
        settle_required(column, "deep")


@pytest.mark.parametrize("wrap", ["list", "map", "struct"])
def test_structs_inside_lists_maps_and_structs_are_settled_too(wrap):
    inner = as_spark_puts_it(pa.int32(), [{"sure": 1}, None, {"sure": 3}, None])
    column: Any = {
        "list": lambda: pa.ListArray.from_arrays([0, 2, 2, 4], inner),
        "map": lambda: pa.MapArray.from_arrays(OFFSETS, KEYS, inner),
        "struct": lambda: pa.StructArray.from_arrays([inner], names=["in"]),
    }[wrap]()
    for part in (column, column.slice(1), column.slice(2, 1)):
        settled = settle_required(part, "deep")
        settled.validate(full=True)
        assert settled.to_pylist() == part.to_pylist()
        assert through_parquet(settled) == part.to_pylist()


def test_a_column_without_required_fields_is_not_touched():
    column = pa.array([{"x": [{"y": 1}]}, None])
    assert settle_required(column, "deep") is column


def test_a_batch_that_conforms_can_be_written():
    column = as_spark_puts_it(pa.int32(), [{"sure": 1}, None])
    schema = pa.schema([("deep", column.type)])
    rows = conform(pa.RecordBatch.from_arrays([column], schema=schema), schema)
    assert pc.count(rows.column(0), mode="only_null").as_py() == 1
    assert through_parquet(rows.column(0)) == [{"sure": 1}, None]
