"""Predicates against rows evaluated one by one, and proofs against every row of a file."""

import datetime as dt
import pickle  # noqa: TID251, what Spark and process pools do
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.upsert.where import parse
from tests.support.examples import examples
from tests.support.predicates import COLUMNS, SCHEMA, Row, Where, batch_of, each_comparison, each_value, rows, wheres

NAN = float("nan")


def matched(where: str, column: str, *values: object) -> list[bool | None]:
    return parse(where, SCHEMA).mask(batch_of([{column: value} for value in values])).to_pylist()


def proof(where: str, *, values: Mapping[str, Any] | None = None, **ranges: tuple[Any, Any]) -> str:
    return parse(where, SCHEMA).proof(values or {}, ranges)


def test_each_comparison_matches_the_values_that_it_is_true_of():
    found = each_value()
    for where in each_comparison():
        mask = parse(where.sql, SCHEMA).mask(batch_of(found))
        assert mask.to_pylist() == [where.truth(row) is True for row in found], where.sql


@given(wheres, rows)
@settings(max_examples=examples(400))
def test_a_row_matches_where_the_predicate_is_true_and_not_null(where: Where, found: list[Row]) -> None:
    mask = parse(where.sql, SCHEMA).mask(batch_of(found))
    assert mask.to_pylist() == [where.truth(row) is True for row in found]


@given(wheres, rows)
@settings(max_examples=examples(200))
def test_the_canonical_form_is_the_same_predicate(where: Where, found: list[Row]) -> None:
    predicate = parse(where.sql, SCHEMA)
    again = parse(str(predicate), SCHEMA)
    assert again == predicate == pickle.loads(pickle.dumps(predicate))
    assert str(again) == str(predicate)
    assert set(predicate.columns) <= set(SCHEMA.names)
    assert predicate.mask(batch_of(found)) == predicate.mask(batch_of(found).select(predicate.columns))


def test_nan_is_greater_than_any_number_and_not_equal_to_one():
    assert matched("score > 1e308", "score", NAN, None, 1.0, float("inf")) == [True, False, False, True]
    assert matched("score <= 1e308", "score", NAN, -1.0) == [False, True]
    assert matched("score <> 5", "score", NAN, 5.0) == [True, False]
    assert matched("score NOT IN (5, 6)", "score", NAN, 5.0) == [True, False]


def test_minus_zero_is_zero():
    for where in ("score = 0", "score IN (-0.0, 7)", "score <=> 0", "NOT score < 0"):
        assert matched(where, "score", -0.0, 0.0) == [True, True]


def test_a_float_is_compared_as_a_double():
    assert matched("ratio = 0.1", "ratio", 0.1) == [False]
    assert matched("ratio > 0.1", "ratio", 0.1) == [True]
    assert matched("ratio = 0.5", "ratio", 0.5) == [True]


def test_null_matches_neither_a_condition_nor_its_negation():
    for where in ("id = 1", "NOT id = 1", "id IN (1, 2)", "id NOT IN (1, 2)", "id NOT BETWEEN 1 AND 2", "id = NULL"):
        assert matched(where, "id", None) == [False]
    assert matched("id NOT IN (1, NULL)", "id", 1, 2) == [False, False]
    assert matched("id <=> NULL", "id", 1, None) == [False, True]
    assert matched("NOT id <=> 1", "id", 1, None) == [False, True]


def test_text_is_ordered_by_code_points():
    assert matched("name > '\uffff'", "name", "🦆", "é") == [True, False]


def test_no_rows_have_an_empty_mask():
    assert matched("id = 1 OR TRUE", "id") == []


def test_columns_are_named_once_and_as_the_schema_spells_them():
    assert parse("ID = 1 AND (day IS NULL OR `Id` = 2) AND ok", SCHEMA).columns == ("id", "day", "ok")


def test_a_partition_is_proven_by_its_values():
    assert proof("id = 7", values={"id": 7}) == "all"
    assert proof("id = 7", values={"id": 8}) == "none"
    assert proof("id IN (7, 8) AND day < '2024-01-01'", values={"id": 8, "day": dt.date(2023, 1, 1)}) == "all"
    assert proof("price = 1.5", values={"price": Decimal("1.50")}) == "all"
    assert proof("id = 7 AND name = 'x'", values={"id": 7}) == "some"
    assert proof("id = 7 AND name = 'x'", values={"id": 8}) == "none"
    assert proof("id = 7 OR name = 'x'", values={"id": 7}) == "all"


def test_a_null_partition_proves_that_no_comparison_matches():
    for where in ("id = 7", "NOT id = 7", "id NOT IN (7)"):
        assert proof(where, values={"id": None}) == "none"
    assert proof("id IS NULL", values={"id": None}) == "all"


def test_a_null_text_partition_may_be_the_empty_string():
    assert proof("name = 'x'", values={"name": None}) == "none"
    for where in ("name = ''", "name IS NULL", "name <> 'x'", "name < 'x'", "name IS NOT NULL"):
        assert proof(where, values={"name": None}) == "some"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id > 9", "all"), ("id >= 10", "all"), ("id > 10", "some"), ("id < 10", "none"), ("id <= 10", "some"),
        ("id <= 20", "all"), ("id < 20", "some"), ("id > 20", "none"), ("id >= 20", "some"), ("id = 9", "none"),
        ("id = 15", "some"), ("id <> 9", "all"), ("id IN (1, 21)", "none"), ("id IN (1, 15)", "some"),
        ("id BETWEEN 10 AND 20", "all"), ("id IS NULL", "none"), ("id IS NOT NULL", "all"), ("id = NULL", "none"),
        ("name = 'x'", "some"), ("name IS NULL", "some"),
    ],
)  # fmt: skip
def test_a_range_proves_what_holds_of_both_bounds(where: str, expected: str) -> None:
    assert proof(where, id=(10, 20)) == expected


def test_a_range_may_be_open_and_a_bound_may_be_cut_within_a_character():
    assert [proof(f"id {sign} 5", id=(None, 9)) for sign in ("<", ">", "<=", ">=")] == ["some"] * 4
    assert [proof(f"id {sign} 9", id=(None, 8)) for sign in ("<", ">", "=")] == ["all", "none", "none"]
    assert [proof(f"id {sign} 5", id=(6, None)) for sign in ("<", ">", "=")] == ["none", "all", "none"]
    assert proof("name < '日本'", name=("日本".encode()[:2], None)) == "some"
    assert proof("name > 'é'", name=("日本".encode()[:2], None)) == "all"


def test_one_value_is_proven_only_where_both_bounds_are_it():
    assert proof("id IN (5, 7)", id=(5, 5)) == "all"
    assert proof("id IN (5, 7)", id=(5, 7)) == "some"


def test_bounds_of_floats_prove_nothing():
    assert proof("score < 5", score=(1.0, 2.0)) == "some"
    assert proof("score IN (5, 6)", score=(1.0, 2.0)) == "some"


def test_a_bound_in_another_zone_is_the_same_instant():
    moment = dt.datetime(2024, 2, 29, 14, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert proof("at = TIMESTAMP '2024-02-29 12:00:00Z'", at=(moment, moment)) == "all"
    digits = moment.replace(tzinfo=None)
    assert proof("local < '2024-02-29 14:00:01'", local=(digits, digits)) == "all"


PATHS = ("id", "tiny", "price", "name", "ok", "day")
FLOATS = ("ratio", "score")


def loosened(column: str, present: Sequence[Any], data: st.DataObject) -> tuple[Any, Any]:
    """Bounds of some values: attained or wider, open, or those of texts cut to two bytes."""
    options = [value for value in COLUMNS[column].values if value <= min(present)]
    lower, upper = data.draw(st.sampled_from(options)), max(present)
    if column == "name" and data.draw(st.booleans()):
        lower, upper = lower.encode()[:2], upper.encode()[:2] + b"\xff" * 4
    bounds: tuple[Any, Any] = data.draw(st.sampled_from([(lower, upper), (lower, None), (None, upper)]))
    return bounds


@given(wheres, rows.filter(bool), st.data())
@settings(max_examples=examples(500))
def test_what_is_proven_is_so_of_every_row(where: Where, found: list[dict[str, Any]], data: st.DataObject) -> None:
    values, ranges = {}, {}
    for column in SCHEMA.names:
        known = data.draw(st.sampled_from(["nothing", "value", "range"]))
        if known == "value" and column in PATHS:
            values[column] = None if found[0][column] == "" else found[0][column]
            for row in found:
                is_null_or_empty = column == "name" and values[column] is None
                row[column] = data.draw(st.sampled_from([None, ""])) if is_null_or_empty else values[column]
        elif known == "range" and column not in FLOATS:
            for row in found:
                row[column] = COLUMNS[column].values[0] if row[column] is None else row[column]
            ranges[column] = loosened(column, [row[column] for row in found], data)
    matches = [where.truth(row) is True for row in found]
    proven = parse(where.sql, SCHEMA).proof(values, ranges)
    assert proven != "all" or all(matches)
    assert proven != "none" or not any(matches)


def test_a_column_of_a_dictionary_is_read_by_its_values():
    batch = pa.record_batch({"name": pa.array(["a", None, "b"]).dictionary_encode()})
    assert parse("name IN ('b', 'c')", SCHEMA).mask(batch).to_pylist() == [False, False, True]
