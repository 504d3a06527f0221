"""Which columns get a dictionary, judged by the files that come of it."""

import io
import math
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallymark.engine.arrow.encoding import DICTIONARY_BYTES, LEAST_ROWS, dictionary_columns


def encoded(rows: pa.Table) -> set[str]:
    """The Parquet columns that a file of these rows has in a dictionary."""
    file = io.BytesIO()
    columns = dictionary_columns(rows)
    pq.write_table(rows, file, use_dictionary=columns, row_group_size=rows.num_rows)  # type: ignore[arg-type]
    group = pq.read_metadata(file).row_group(0)
    written = [group.column(number) for number in range(group.num_columns)]
    return {column.path_in_schema for column in written if "RLE_DICTIONARY" in column.encodings}


def drawn(rows: int, different: int, *, seed: int = 1) -> pa.Table:
    """Rows of so many values, each as frequent as any other."""
    values = random.Random(seed)
    return pa.table({"value": [values.randrange(different) for _ in range(rows)]})


def test_what_recurs_gets_a_dictionary_and_what_does_not_gets_none():
    count = 20_000
    rows = pa.table(
        {
            "id": range(count),
            "kind": ["sale", "return"] * (count // 2),
            "price": [math.sqrt(number) for number in range(count)],
            "day": [20131121] * count,
        }
    )
    assert encoded(rows) == {"kind", "day"}


@pytest.mark.no_cover
@pytest.mark.parametrize("rows", [2_000, 20_000, 200_000])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_half_as_many_values_as_rows(rows, seed):
    assert encoded(drawn(rows, rows // 3, seed=seed)) == {"value"}
    assert encoded(drawn(rows, rows, seed=seed)) == set()


def test_values_that_would_fill_the_dictionary_get_none():
    wide = 256
    fits, full = (
        [f"{number:0{wide}}" for number in random.Random(1).choices(range(different), k=40_000)]
        for different in (DICTIONARY_BYTES // wide // 2, DICTIONARY_BYTES // wide * 2)
    )
    assert encoded(pa.table({"fits": fits, "full": full})) == {"fits"}


def test_nulls_take_no_part():
    rare = [None if number % 10 else number for number in range(40_000)]
    same = [None if number % 10 else 7 for number in range(40_000)]
    assert encoded(pa.table({"rare": rare, "same": same, "none": pa.nulls(40_000, pa.int64())})) == {"same", "none"}


def test_parts_of_nested_columns_are_found_under_the_names_that_parquet_gives_them():
    count = 2_000
    rows = pa.table(
        {
            "with.dot": ["x"] * count,
            "struct": [{"a": 1, "deep": [{"b": 2.0}]}] * count,
            "list": [[1, 2]] * count,
            "fixed": pa.array([[1, 2]] * count, pa.list_(pa.int32(), 2)),
            "map": pa.array([[("key", 1)]] * count, pa.map_(pa.string(), pa.int64())),
        }
    )
    assert encoded(rows) == {
        "with.dot",
        "struct.a",
        "struct.deep.list.element.b",
        "list.list.element",
        "fixed.list.element",
        "map.key_value.key",
        "map.key_value.value",
    }


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(LEAST_ROWS),
        pa.array(["x"] * LEAST_ROWS).dictionary_encode(),
        pa.array([{}] * LEAST_ROWS, pa.struct([])),
    ],
    ids=["null", "dictionary", "empty struct"],
)
def test_types_of_which_values_cannot_be_counted_are_no_obstacle(column):
    assert dictionary_columns(pa.table({"it": column})) in (["it"], [])


def test_of_a_few_rows_every_column_may_have_one():
    assert dictionary_columns(pa.table({"id": range(LEAST_ROWS - 1)})) is True
