"""Table properties: their bytes as Java reads them, their keys, and the columns that may partition."""

import dataclasses
import zlib
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject, InvalidRequest, UnsupportedTable
from tallymark.engine.timeline.java_properties import load, store
from tallymark.engine.timeline.properties import TableProperties, check_partition_columns
from tests.support import arrow_types

SCHEMA = pa.schema([("id", pa.int64()), ("month", pa.int32()), ("day", pa.int32()), ("tags", pa.list_(pa.string()))])
FLIGHTS = TableProperties(name="flights", partition_by=("month", "day"), schema=SCHEMA, created="20261101000000000")


def stored(properties: TableProperties = FLIGHTS) -> dict[str, str]:
    return load(properties.encode(), source="here")


def changed(changes: dict[str, str | None]) -> bytes:
    return store({key: value for key, value in {**stored(), **changes}.items() if value is not None})


@given(st.data())
def test_decoding_gives_back_what_was_encoded_with_nullability_and_metadata(data: st.DataObject) -> None:
    schema = data.draw(arrow_types.schemas)
    plain = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_signed_integer(field.type)]
    partition_by = data.draw(st.lists(st.sampled_from(plain), unique=True)) if plain else []
    assume(len(partition_by) < len(schema))
    properties = TableProperties(
        name=data.draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1)),
        partition_by=tuple(partition_by),
        schema=schema,
        created="20261101000000000",
        last_field_id=data.draw(st.integers(0, 10**9 - 1)),
    )
    decoded = TableProperties.decode(properties.encode())
    assert decoded == properties
    assert decoded.schema.equals(schema, check_metadata=True)
    assert decoded.encode() == properties.encode()


def test_readers_of_the_hudi_format_find_their_keys() -> None:
    found = stored()
    assert {key: found[key] for key in found if not key.startswith("tallymark.")} == {
        "hoodie.table.name": "flights",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.partition.fields": "month,day",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.archivelog.folder": "archived",
        "hoodie.table.create.schema": FLIGHTS.avro_schema(),
        "hoodie.table.checksum": str(zlib.crc32(b".flights")),
    }
    assert (found["tallymark.format"], found["tallymark.readers"]) == ("1", "directory")


def test_a_value_holds_no_equals_sign_at_which_daft_would_split_its_line() -> None:
    for count in range(20):
        properties = dataclasses.replace(FLIGHTS, schema=SCHEMA.with_metadata({"note": "x" * count}))
        assert all(line.count(b"=") == 1 for line in properties.encode().splitlines())


@pytest.mark.parametrize(
    ("partition_by", "generator"), [((), "NonpartitionedKeyGenerator"), (("day",), "SimpleKeyGenerator")]
)
def test_the_key_generator_fits_the_number_of_partition_columns(partition_by: tuple[str, ...], generator: str) -> None:
    found = stored(dataclasses.replace(FLIGHTS, partition_by=partition_by))
    assert found["hoodie.table.keygenerator.class"].endswith(f".{generator}")
    assert found.get("hoodie.table.partition.fields", "") == ",".join(partition_by)


def test_a_file_that_java_has_rewritten_is_still_read() -> None:
    lines = FLIGHTS.encode().decode().splitlines()
    rewritten = "#Updated at 2026-11-21\r\n#Sat Nov 21 00:00:00 UTC 2026\r\n" + "\r\n".join(reversed(lines))
    assert TableProperties.decode(rewritten.encode()) == FLIGHTS


def test_a_database_name_takes_part_in_the_checksum() -> None:
    data = changed({"hoodie.database.name": "db", "hoodie.table.checksum": str(zlib.crc32(b"db.flights"))})
    assert TableProperties.decode(data) == FLIGHTS


@pytest.mark.parametrize(
    ("key", "value", "found", "needed"),
    [
        ("hoodie.table.version", "8", "'8'", "'6'"),
        ("hoodie.table.version", None, "'nothing'", "'6'"),
        ("hoodie.timeline.layout.version", "2", "'2'", "'1'"),
        ("hoodie.table.type", "MERGE_ON_READ", "'MERGE_ON_READ'", "'COPY_ON_WRITE'"),
        ("hoodie.table.metadata.partitions", "files", "'files'", "without one"),
        ("tallymark.format", None, "no tallymark.format", "2"),
        ("tallymark.format", "3", "'3'", "newer release"),
        ("tallymark.readers", "nobody", "'nobody'", "'directory' and 'table'"),
        ("tallymark.readers", None, "'nothing'", "'directory' and 'table'"),
        ("hoodie.table.timeline.timezone", "LOCAL", "'LOCAL'", "'UTC'"),
        ("hoodie.populate.meta.fields", "true", "'true'", "'false'"),
    ],
)
def test_a_table_of_another_kind_is_refused_with_what_was_found_and_needed(
    key: str, value: str | None, found: str, needed: str
) -> None:
    with pytest.raises(UnsupportedTable) as refused:
        TableProperties.decode(changed({key: value}))
    message = str(refused.value)
    assert found in message
    assert needed in message
    assert "path" in message or "install" in message


def test_an_empty_list_of_metadata_partitions_is_no_metadata_table() -> None:
    assert TableProperties.decode(changed({"hoodie.table.metadata.partitions": ""})) == FLIGHTS


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.table.name", None),
        ("hoodie.table.name", "other"),
        ("hoodie.table.checksum", None),
        ("hoodie.table.checksum", "1"),
        ("hoodie.table.partition.fields", "year"),
        ("tallymark.format", "one"),
        ("tallymark.created", "yesterday"),
        ("tallymark.last_field_id", "-1"),
        ("tallymark.schema", None),
        ("tallymark.schema", ""),
        ("tallymark.schema", "%%%"),
        ("tallymark.schema", "ü"),
        ("tallymark.schema", "AAAA"),
        ("tallymark.schema", stored()["tallymark.schema"][:100]),
    ],
)
def test_a_damaged_file_is_corrupt(key: str, value: str | None) -> None:
    with pytest.raises(CorruptObject, match=r"hoodie\.properties"):
        TableProperties.decode(changed({key: value}))


@pytest.mark.no_cover
def test_a_torn_file_is_never_taken_and_no_flipped_bit_changes_what_decides_how_the_table_is_written() -> None:
    properties = dataclasses.replace(FLIGHTS, id="0a" * 16, readers="table", retain_hours=24.0)
    data = properties.encode()
    for size in range(len(data) - 1):
        with pytest.raises((CorruptObject, UnsupportedTable)):
            TableProperties.decode(data[:size])
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with suppress(CorruptObject, UnsupportedTable):
            decoded = TableProperties.decode(bytes(damaged))
            assert decoded == properties, bytes(damaged)
            assert decoded.schema.equals(SCHEMA, check_metadata=True)


@given(st.binary())
def test_garbage_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptObject):
        TableProperties.decode(data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "empty"),
        ({"name": "\ud800"}, "no Unicode"),
        ({"partition_by": ("Day",)}, "'Day' is not in the schema"),
        (
            {"partition_by": ("b", "a"), "schema": pa.schema({"a": pa.string(), "b": pa.string()})},
            r"'b', 'a' are all there is.*add one",
        ),
        ({"schema": pa.schema([("id", pa.uint8())])}, "int16"),
        ({"readers": "tabel"}, "'tabel'"),
    ],
)
def test_what_cannot_become_a_table_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        dataclasses.replace(FLIGHTS, **{"partition_by": (), **changes})  # type: ignore[arg-type]


PLAIN: dict[str, pa.DataType] = {
    "text": pa.string(),
    "large": pa.large_string(),
    "tiny": pa.int8(),
    "long": pa.int64(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "price": pa.decimal128(10, 2),
}
OTHERS: dict[str, pa.DataType] = {
    "x": pa.float64(),
    "at": pa.timestamp("us", "UTC"),
    "raw": pa.binary(),
    "count": pa.uint32(),
    "code": pa.dictionary(pa.int32(), pa.string()),
    "day64": pa.date64(),
    "place": pa.struct([("city", pa.string())]),
    "tags": pa.list_(pa.string()),
}
CANDIDATES = pa.schema([*{**PLAIN, **OTHERS}.items(), *((name, pa.int32()) for name in ("twice", "twice", ".hidden"))])


def test_strings_signed_integers_bools_dates_and_decimals_may_partition():
    for count in range(8):
        check_partition_columns(CANDIDATES, [*PLAIN][:count])


@pytest.mark.parametrize("column", OTHERS)
def test_another_type_is_refused_with_its_name_and_a_remedy(column):
    with pytest.raises(InvalidRequest, match=f"partition column '{column}' is .*; a partition column is .*: derive"):
        check_partition_columns(CANDIDATES, ["text", column])


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
        check_partition_columns(CANDIDATES, partition_by)


@given(st.dictionaries(st.text(st.characters(exclude_characters=" ", exclude_categories=["Cs"])), st.text()))
@example({"key": " \t value "})
def test_what_is_stored_is_loaded_again(properties: dict[str, str]) -> None:
    data = store(properties)
    assert data.isascii()
    assert load(data, source="here") == properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a \t= \f b ", {"a": "b "}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("a=1\na=2", {"a": "2"}),
        ("#a=1\n ! b=2\n\n \t\nc=3", {"c": "3"}),
        ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=b\\\n   c\\\r\n\td", {"a": "bcd"}),
        ("a=b\\\n#c", {"a": "b#c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("\\\n#a\n\nb=c", {"b": "c"}),
        ("\\\n", {}),
        ("a\\=b\\:\\ c=d", {"a=b: c": "d"}),
        ("a=\\t\\n\\r\\f\\z\\u00fc\\uD83D\\ude42", {"a": "\t\n\r\fzü🙂"}),
        ("a=\xfc", {"a": "ü"}),
        ("", {}),
    ],
)
def test_lines_are_read_as_java_reads_them(text: str, properties: dict[str, str]) -> None:
    assert load(text.encode("latin-1"), source="here") == properties


@pytest.mark.parametrize("text", ["a=\\u00f", "a=\\uzzzz", "\\u=1", "a=\\ud83d"])
def test_a_broken_escape_is_corrupt_and_names_the_file(text: str) -> None:
    with pytest.raises(CorruptObject, match="here is damaged"):
        load(text.encode(), source="here")


@given(st.binary() | st.text("\\u0=:#! a\n\r\t").map(str.encode))
def test_any_bytes_are_loaded_or_corrupt(data: bytes) -> None:
    with suppress(CorruptObject):
        assert isinstance(load(data, source="here"), dict)
