import pyarrow as pa
import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.partition_columns import check_partition_columns

COLUMNS: list[tuple[str, pa.DataType]] = [
    ("text", pa.string()),
    ("large", pa.large_string()),
    ("tiny", pa.int8()),
    ("long", pa.int64()),
    ("flag", pa.bool_()),
    ("day", pa.date32()),
    ("price", pa.decimal128(10, 2)),
    ("x", pa.float64()),
    ("at", pa.timestamp("us", "UTC")),
    ("raw", pa.binary()),
    ("count", pa.uint32()),
    ("code", pa.dictionary(pa.int32(), pa.string())),
    ("day64", pa.date64()),
    ("place", pa.struct([("city", pa.string())])),
    ("twice", pa.int32()),
    ("twice", pa.int32()),
    (".hidden", pa.int32()),
]
SCHEMA = pa.schema(COLUMNS)


def test_strings_signed_integers_bools_dates_and_decimals_may_partition():
    for count in range(8):
        check_partition_columns(SCHEMA, ("text", "large", "tiny", "long", "flag", "day", "price")[:count])
    with pytest.raises(InvalidRequest):
        check_partition_columns(SCHEMA, ("text", "x"))


@pytest.mark.parametrize("column", ["x", "at", "raw", "count", "code", "day64", "place"])
def test_another_type_is_refused_with_its_name_and_a_remedy(column):
    with pytest.raises(InvalidRequest, match=f"partition column '{column}' is .*; a partition column is .*: derive"):
        check_partition_columns(SCHEMA, ["text", column])


@pytest.mark.parametrize(
    ("partition_by", "rule"),
    [
        (["absent"], "'absent' is not in the schema; top-level columns are 'text', "),
        (["place.city"], "'place.city' is not in the schema.*copy it into a column"),
        (["text", "day", "text"], "'text' is named twice"),
        (["twice"], "'twice' stands 2 times"),
        ([".hidden"], "'.hidden' would make a directory that readers skip"),
    ],
)
def test_a_column_that_cannot_partition_is_named_with_the_rule(partition_by, rule):
    with pytest.raises(InvalidRequest, match=rule):
        check_partition_columns(SCHEMA, partition_by)


def test_only_partition_columns_and_nothing_else_is_refused():
    schema = pa.schema({"a": pa.string(), "b": pa.string()})
    with pytest.raises(InvalidRequest, match=r"'b', 'a' are all there is.*add one"):
        check_partition_columns(schema, ["b", "a"])
