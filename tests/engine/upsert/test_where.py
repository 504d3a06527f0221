"""The grammar of ``where``: what it reads, and how it refuses the rest."""

import pyarrow as pa
import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.upsert.where import CHARS_MAX, DEPTH_MAX, parse

FIELDS: list[tuple[str, pa.DataType]] = [
    ("id", pa.int32()),
    ("tiny", pa.int8()),
    ("price", pa.decimal128(10, 2)),
    ("wide", pa.decimal128(38, 20)),
    ("ratio", pa.float32()),
    ("score", pa.float64()),
    ("name", pa.large_string()),
    ("ok", pa.bool_()),
    ("day", pa.date32()),
    ("at", pa.timestamp("us", "Europe/Berlin")),
    ("local", pa.timestamp("us")),
    ("raw", pa.binary()),
    ("point", pa.struct([("x", pa.int32())])),
    ("date", pa.date32()),
    ("in", pa.int32()),
    ("odd`name", pa.int32()),
]
SCHEMA = pa.schema(FIELDS)


@pytest.mark.parametrize(
    ("where", "canonical"),
    [
        ("id=5", "(`id` = 5)"),
        ("id == +5", "(`id` = 5)"),
        ("ID<>-5", "(NOT (`id` = -5))"),
        ("id != - 5", "(NOT (`id` = -5))"),
        ("5 < id", "(`id` > 5)"),
        ("5 >= id", "(`id` <= 5)"),
        ("id <=> 5", "((NOT (`id` IS NULL)) AND (`id` = 5))"),
        ("NULL <=> id", "(`id` IS NULL)"),
        ("id is not null", "(NOT (`id` IS NULL))"),
        ("id in (1, 2,3)", "(`id` IN (1, 2, 3))"),
        ("id NOT IN (1, NULL)", "(NOT ((`id` = 1) OR NULL))"),
        ("id IN (NULL)", "NULL"),
        ("id < NULL", "NULL"),
        ("id between 1 and 2", "((`id` >= 1) AND (`id` <= 2))"),
        ("id NOT BETWEEN 1 AND 2 AND ok", "((NOT ((`id` >= 1) AND (`id` <= 2))) AND (`ok` = TRUE))"),
        ("ok", "(`ok` = TRUE)"),
        ("NOT ok = false", "(NOT (`ok` = FALSE))"),
        ("true", "TRUE"),
        ("not NULL", "(NOT NULL)"),
        ("id = 1 OR id = 2 AND id = 3", "((`id` = 1) OR ((`id` = 2) AND (`id` = 3)))"),
        ("(id = 1 OR id = 2) AND id = 3", "(((`id` = 1) OR (`id` = 2)) AND (`id` = 3))"),
        ("NOT id = 1 AND ok", "((NOT (`id` = 1)) AND (`ok` = TRUE))"),
        ("NOT NOT id = 1", "(`id` = 1)"),
        ("price = .5 or price = 7", "((`price` = 0.50) OR (`price` = 7.00))"),
        ("ratio = 16777216", "(`ratio` = 16777216.0)"),
        ("score > -1e-7", "(`score` > -1e-07)"),
        (r"name = 'it\'s a \\ '", r"(`name` = 'it\'s a \\ ')"),
        ("name = '\n\"é'", "(`name` = '\n\"é')"),
        ("day = '2024-02-29'", "(`day` = DATE '2024-02-29')"),
        ("date = date'2024-02-29'", "(`date` = DATE '2024-02-29')"),
        ("`in` = 1 and `ODD``name` = 2", "((`in` = 1) AND (`odd``name` = 2))"),
        ("at = '2024-02-29 12:00:00.5+02:00'", "(`at` = TIMESTAMP '2024-02-29 10:00:00.500000+00:00')"),
        ("at IN (TIMESTAMP '2024-02-29T12:00:00Z')", "(`at` = TIMESTAMP '2024-02-29 12:00:00+00:00')"),
        ("local > timestamp '2024-02-29 12:00:00'", "(`local` > TIMESTAMP_NTZ '2024-02-29 12:00:00')"),
        ("raw IS NULL or point is null", "((`raw` IS NULL) OR (`point` IS NULL))"),
    ],
)
def test_the_canonical_form_says_what_was_read(where: str, canonical: str) -> None:
    assert str(parse(where, SCHEMA)) == canonical
    assert parse(canonical, SCHEMA) == parse(where, SCHEMA)


@pytest.mark.parametrize(
    ("where", "character", "problem"),
    [
        ("", 1, "expected a column .* found the end; a where compares"),
        ("id", 3, "expected a comparison, since column 'id' is int32, found the end"),
        ("id = = 1", 6, "expected a literal, found ="),
        ("id = ok", 6, "expected a literal, found ok"),
        ("1 = 1", 5, "expected a column"),
        ("1", 2, "expected a comparison with a column"),
        ("id = 1 2", 8, "expected AND, OR or the end, found 2"),
        ("((id = 1)", 10, r"expected \), found the end"),
        ("id not = 1", 8, "expected IN or BETWEEN"),
        ("id in ()", 8, "expected a literal"),
        ("id in (1, id)", 11, "expected a literal"),
        ("id between 1 or 2", 14, "expected AND"),
        ("id is 1", 7, "expected NULL"),
        ("id = -name", 7, "expected a number"),
        ("name like 'a%'", 6, "expected a comparison, since column 'name' is large_string, found like"),
        ("abs(id) = 1", 1, "expected a column .* found abs; a where compares"),
        ("in = 1", 1, "expected a column .in backquotes where it is named like a keyword"),
        ("id = 1 -- all", 8, "expected AND"),
        ("id % 2 = 0", 4, "'%' is not a part of the grammar"),
        ("id = 1L", 6, "'1L' is not a part of the grammar"),
        ("point.x = 1", 6, "a nested field cannot be compared; compare a top-level column"),
        ('name = "a"', 8, "write text in single quotes"),
        ("name = 'a", 8, "no closing quote"),
        ("`id = 1", 1, "no closing backquote"),
        ("name = 'a''b'", 11, r"Spark 3 and Spark 4 read '' within a text differently; write \\'"),
        ("name = 'a' 'b'", 12, "expected AND"),
        (r"name = 'a\n'", 8, r"only \\\\ and \\' have a backslash"),
        ("name = '\udc80'", 9, "not a Unicode character"),
        ("nam = 'a'", 1, "'nam' is not a column; is it 'name'"),
        ("xyz = 1", 1, "'xyz' is not a column; is it 'id' or 'tiny' or"),
        ("id = '5'", 6, "column 'id' is int32, which '5' does not fit: it is of another type; give a whole number"),
        ("id = 5.0", 6, "another type"),
        ("id = 1e3", 6, "another type"),
        ("id = TRUE", 6, "another type"),
        ("ok = 1", 6, "another type; give TRUE or FALSE"),
        ("name = 5", 8, "another type; give text in single quotes"),
        ("tiny = 128", 8, "does not fit"),
        ("id in (1, 3000000000)", 11, "does not fit"),
        ("price = 1.234", 9, "more than 2 digits after the point"),
        ("price = 123456789", 9, "does not fit"),
        ("price = " + "9" * 50, 9, "does not fit"),
        ("wide in (3000000000)", 10, "append .0"),
        ("ratio = 16777217", 9, "without ANSI mode, Spark rounds it to a float; append .0"),
        ("score = 1e999", 9, "greater than any double"),
        ("day = '2024-2-9'", 7, "not of that form; give DATE 'YYYY-MM-DD'"),
        ("day = '2023-02-29'", 7, "day is out of range for month"),
        ("day = TIMESTAMP '2024-02-29 00:00:00'", 7, "another type"),
        ("at = '2024-02-29'", 6, "not of that form"),
        ("at = '2024-02-29 24:00:00Z'", 6, "not of that form"),
        ("at = '2024-02-29 12:00:00.1234567Z'", 6, "not of that form"),
        (
            "at = TIMESTAMP '2024-02-29 12:00:00'",
            6,
            "none where the column has one: .* or the same with Z or an offset",
        ),
        ("at = TIMESTAMP_NTZ '2024-02-29 12:00:00Z'", 6, "another type"),
        ("local = '2024-02-29 12:00:00Z'", 9, "zone where the column has"),
        ("at = '2024-02-29 12:00:00+19:00'", 6, "18 hours"),
        ("at = '0001-01-01 00:00:00+01:00'", 6, "does not fit"),
        (
            "at IN ('2024-02-29 12:00:00Z')",
            8,
            "without ANSI mode, Spark compares texts here; write TIMESTAMP before it",
        ),
        ("raw = 'a'", 7, r"column 'raw' is binary; only IS \[NOT\] NULL applies to it"),
        ("point = 1", 9, "only IS"),
    ],
)
def test_an_error_names_the_text_the_position_and_the_rule(where: str, character: int, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem) as caught:
        parse(where, SCHEMA)
    assert str(caught.value).startswith(f"where={where!r}, character {character}: ")


def test_a_name_that_differs_from_another_only_by_case_is_refused():
    schema = pa.schema([("id", pa.int32()), ("Id", pa.int32())])
    with pytest.raises(InvalidRequest, match="'id' is 'id' or 'Id', since Spark ignores case; rename one"):
        parse("id = 1", schema)


def test_nesting_is_bounded():
    assert parse("(" * DEPTH_MAX + "ok" + ")" * DEPTH_MAX, SCHEMA) == parse("ok", SCHEMA)
    with pytest.raises(InvalidRequest, match=f"nested deeper than {DEPTH_MAX} levels"):
        parse("(" * (DEPTH_MAX + 1) + "ok" + ")" * (DEPTH_MAX + 1), SCHEMA)
    with pytest.raises(InvalidRequest, match="nested deeper"):
        parse("(NOT (ok OR " * 25 + "ok" + "))" * 25, SCHEMA)
    assert parse("NOT " * 10_001 + "ok", SCHEMA) == parse("NOT ok", SCHEMA)


def test_length_is_bounded_in_the_canonical_form_too():
    many = " OR ".join(["ok"] * 2000)
    assert parse(str(parse(many, SCHEMA)), SCHEMA) == parse(many, SCHEMA)
    for where in (" " * CHARS_MAX + "ok", " OR ".join(["ok"] * 8000)):
        with pytest.raises(InvalidRequest, match="longer than 65,536 characters, all parentheses included") as caught:
            parse(where, SCHEMA)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "where", ["x" * 60_000, f"price = {'9' * 60_000}", f"id = {'9' * 60_000}", "name = 1" + "0" * 60_000]
)
def test_an_error_is_short_also_of_a_long_text(where: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(where, SCHEMA)
    assert len(str(caught.value)) < 500


def test_an_error_shows_where_a_long_text_goes_wrong():
    where = " OR ".join(["id = 1"] * 50) + " OR id = 'x'"
    with pytest.raises(InvalidRequest, match=r"^where=\"\.\.\.1 OR id = 1.* OR id = 'x'\", character 506: "):
        parse(where, SCHEMA)
