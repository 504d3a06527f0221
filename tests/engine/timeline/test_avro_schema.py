import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.avro_schema import NESTING_MAX, avro_schema
from tests.support import arrow_types


def written(*fields: Any) -> list[dict[str, object]]:
    columns: list[dict[str, object]] = json.loads(avro_schema(pa.schema(fields), name="t"))["fields"]
    return columns


def nested(level_count: int) -> pa.DataType:
    type_: pa.DataType = pa.int32()
    for _ in range(level_count):
        type_ = pa.struct([("a", type_)])
    return type_


def test_nullability_is_carried_at_every_level() -> None:
    element = pa.field("element", pa.int32(), nullable=False)
    assert written(
        pa.field("a", pa.list_(element), nullable=False),
        pa.field("b", pa.map_(pa.string(), pa.int8())),
    ) == [
        {"name": "a", "type": {"type": "array", "items": "int"}},
        {"name": "b", "type": ["null", {"type": "map", "values": ["null", "int"]}], "default": None},
    ]


def test_every_timestamp_is_one_of_micros_in_utc() -> None:
    micros = ["null", {"type": "long", "logicalType": "timestamp-micros"}]
    columns = written(("a", pa.timestamp("us")), ("b", pa.timestamp("us", "Europe/Berlin")))
    assert [column["type"] for column in columns] == [micros, micros]


@pytest.mark.parametrize(("precision", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (18, 8), (19, 9), (38, 16)])
def test_a_decimal_takes_as_many_bytes_as_its_digits_need(precision: int, size: int) -> None:
    (column,) = written(pa.field("a", pa.decimal128(precision, 1), nullable=False))
    assert column["type"] == {
        "type": "fixed",
        "name": "a",
        "namespace": "hoodie.t.t_record",
        "size": size,
        "logicalType": "decimal",
        "precision": precision,
        "scale": 1,
    }


@given(arrow_types.schemas)
def test_no_name_of_a_type_is_used_twice(schema: pa.Schema) -> None:
    seen: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> dict[str, object]:
        read = dict(pairs)
        if "namespace" in read:
            seen.append(f"{read['namespace']}.{read['name']}")
        return read

    json.loads(avro_schema(schema, name="t"), object_pairs_hook=note)
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(
    ("name", "record"),
    [("flights", "hoodie.flights.flights_record"), ("1 ü", "hoodie._1__._1___record"), ("", "hoodie._.__record")],
)
def test_the_record_is_named_after_the_table(name: str, record: str) -> None:
    schema = json.loads(avro_schema(pa.schema([("a", pa.int8())]), name=name))
    assert f"{schema['namespace']}.{schema['name']}" == record


@pytest.mark.parametrize(
    ("type_", "remedy"),
    [
        (pa.null(), "give it a type"),
        (pa.uint8(), "int16"),
        (pa.uint16(), "int32"),
        (pa.uint32(), "int64"),
        (pa.uint64(), "decimal128(20, 0)"),
        (pa.float16(), "float32"),
        (pa.timestamp("s"), "timestamp('us')"),
        (pa.timestamp("ms", "UTC"), "timestamp('us', 'UTC')"),
        (pa.timestamp("ns"), "timestamp('us')"),
        (pa.date64(), "date32"),
        (pa.time32("ms"), "int64"),
        (pa.time64("us"), "int64"),
        (pa.duration("us"), "int64"),
        (pa.month_day_nano_interval(), "integer columns"),
        (pa.dictionary(pa.int8(), pa.string()), "cast it to string"),
        (pa.run_end_encoded(pa.int32(), pa.int8()), "cast it to int8"),
        (pa.string_view(), "cast it to string"),
        (pa.binary_view(), "cast it to binary"),
        (pa.list_view(pa.int8()), "cast it to list"),
        (pa.large_list_view(pa.int8()), "cast it to list"),
        (pa.large_list(pa.int8()), "cast it to list"),
        (pa.list_(pa.int8(), 2), "cast it to list"),
        (pa.binary(2), "cast it to binary"),
        (pa.decimal256(40, 2), "at most 38 digits"),
        (pa.decimal128(5, -2), "scale between 0 and the precision"),
        (pa.decimal128(5, 6), "scale between 0 and the precision"),
        (pa.dense_union([pa.field("a", pa.int8())]), "use a struct"),
        (pa.struct([]), "at least one field"),
        (pa.map_(pa.int32(), pa.int8()), "cast its keys to string"),
        (pa.uuid(), "storage type"),
    ],
    ids=str,
)
def test_a_type_that_readers_cannot_represent_is_refused_with_its_path_and_a_remedy(
    type_: pa.DataType, remedy: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        avro_schema(pa.schema([("id", pa.int64()), ("a", pa.list_(pa.struct([("b", type_)])))]), name="t")
    for words in ("'a.element.b'", str(type_), remedy):
        assert words in str(refused.value)


@pytest.mark.parametrize("name", ["", "a b", "ü", "1x", "a.b", "a-b", "a\n", "日本", 'a"b'])
def test_a_name_that_avro_cannot_spell_is_refused_at_any_depth(name: str) -> None:
    for type_ in (pa.struct([(name, pa.int8())]), pa.map_(pa.string(), pa.struct([(name, pa.int8())]))):
        with pytest.raises(InvalidRequest, match="rename the column"):
            avro_schema(pa.schema([("ok", type_)]), name="t")
    with pytest.raises(InvalidRequest, match="rename the column"):
        avro_schema(pa.schema([(name, pa.int8())]), name="t")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([("s", pa.struct([("Id", pa.int8()), ("ID", pa.int8())]))], r"'s\.ID' and 's\.Id'"),
        ([("a", pa.int8()), ("a", pa.int8())], "'a' and 'a'"),
        ([("_Hoodie_commit_time", pa.string())], "_Hoodie_commit_time"),
        ([], "no columns"),
        ([("a", nested(NESTING_MAX + 1))], "deeper than 24 levels"),
    ],
    ids=["names that differ only in case", "one name twice", "a meta column of Hudi", "no columns", "deep nesting"],
)
def test_a_schema_that_readers_cannot_read_is_refused(fields: list[tuple[str, pa.DataType]], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        avro_schema(pa.schema(fields), name="t")
    assert avro_schema(pa.schema([("a", nested(NESTING_MAX))]), name="t"), "the limit itself"
