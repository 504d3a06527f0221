"""Field ids of a new table."""

import pyarrow as pa
from hypothesis import given

from tallymark.engine.arrow.field_ids import FIELD_ID, with_field_ids
from tests.support import arrow_types
from tests.support.parquet import ids_of


@given(arrow_types.schemas)
def test_every_field_has_another_id_and_nothing_else_changes(schema: pa.Schema) -> None:
    numbered, last = with_field_ids(schema)
    assert numbered.equals(schema)
    assert numbered.metadata == schema.metadata
    for field in schema:
        assert numbered.field(field.name).metadata == {
            **(field.metadata or {}),
            FIELD_ID: b"%d" % ids_of(numbered)[field.name],
        }
    assert sorted(ids_of(numbered).values()) == list(range(1, last + 1))


def test_fields_are_numbered_as_iceberg_numbers_them_whatever_ids_they_had() -> None:
    deep = pa.struct([("x", pa.int32()), ("ys", pa.list_(pa.string()))])
    tags = pa.field("tags", pa.list_(deep), metadata={FIELD_ID: "1", b"note": b"kept"})
    others: dict[str, pa.DataType] = {"id": pa.int64(), "pairs": pa.map_(pa.string(), deep), "last": deep}
    schema = pa.schema(others).insert(1, tags)
    numbered, last = with_field_ids(schema)
    assert ids_of(numbered) == {
        "id": 1,
        "tags": 2,
        "pairs": 3,
        "last": 4,
        "tags.element": 5,
        "tags.element.x": 6,
        "tags.element.ys": 7,
        "tags.element.ys.element": 8,
        "pairs.key": 9,
        "pairs.value": 10,
        "pairs.value.x": 11,
        "pairs.value.ys": 12,
        "pairs.value.ys.element": 13,
        "last.x": 14,
        "last.ys": 15,
        "last.ys.element": 16,
    }
    assert last == 16
    assert numbered.field("tags").metadata == {FIELD_ID: b"2", b"note": b"kept"}
