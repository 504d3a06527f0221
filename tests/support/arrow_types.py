"""Hypothesis strategies for the Arrow types that a table may have, and values of them."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

PLAIN = (
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us", "Europe/Berlin"),
    pa.timestamp("us", "-03:30"),
    pa.decimal128(1, 0),
    pa.decimal128(2, 2),
    pa.decimal128(9, 2),
    pa.decimal128(18, 6),
    pa.decimal128(19, 0),
    pa.decimal128(38, 10),
)

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True).filter(lambda n: not n.lower().startswith("_hoo"))
metadata = st.none() | st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2)


def _nest(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.lists(_fields(inner), min_size=1, max_size=3, unique_by=lambda field: field.name.lower())
    return (
        st.builds(lambda type_, null: pa.list_(pa.field("element", type_, nullable=null)), inner, st.booleans())
        | st.builds(
            lambda key, type_, null: pa.map_(key, pa.field("value", type_, nullable=null)),
            st.sampled_from((pa.string(), pa.large_string())),
            inner,
            st.booleans(),
        )
        | fields.map(pa.struct)
    )


def _fields(inner: st.SearchStrategy[pa.DataType]) -> "st.SearchStrategy[pa.Field[Any]]":
    return st.builds(
        lambda name, type_, null, notes: pa.field(name, type_, nullable=null, metadata=notes),
        names,
        inner,
        st.booleans(),
        metadata,
    )


data_types: st.SearchStrategy[pa.DataType] = st.recursive(st.sampled_from(PLAIN), _nest, max_leaves=4)
schemas = st.builds(
    lambda fields, notes: pa.schema(fields, metadata=notes),
    st.lists(_fields(data_types), min_size=1, max_size=4, unique_by=lambda field: field.name.lower()),
    metadata,
)


def rows_of(schema: pa.Schema) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({field.name: _field_values(field) for field in schema})


def _field_values(field: "pa.Field[Any]") -> st.SearchStrategy[Any]:
    values = _values(field.type)
    return st.none() | values if field.nullable else values


def _values(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(type_):
        return st.fixed_dictionaries({field.name: _field_values(field) for field in type_})
    if pa.types.is_list(type_):
        return st.lists(_field_values(type_.value_field), max_size=3)
    if pa.types.is_map(type_):
        return st.dictionaries(st.text(max_size=3), _field_values(type_.item_field), max_size=2).map(
            lambda pairs: list(pairs.items())
        )
    return _plain_values(type_)


def _plain_values(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_boolean(type_):
        return st.booleans()
    if pa.types.is_integer(type_):
        return st.integers(-(2 ** (type_.bit_width - 1)), 2 ** (type_.bit_width - 1) - 1)
    if pa.types.is_floating(type_):
        return st.floats(allow_nan=False, width=32)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return st.text(max_size=5)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return st.binary(max_size=5)
    if pa.types.is_date32(type_):
        return st.dates()
    if pa.types.is_timestamp(type_):
        moments = st.datetimes(min_value=dt.datetime(1, 1, 3), max_value=dt.datetime(9999, 12, 29))  # noqa: DTZ001
        return moments.map(lambda moment: moment.replace(tzinfo=dt.UTC)) if type_.tz else moments
    assert pa.types.is_decimal128(type_), type_
    most = 10**type_.precision - 1
    return st.integers(-most, most).map(lambda digits: Decimal(f"{digits}E-{type_.scale}"))
