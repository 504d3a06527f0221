"""Predicates with the rows that they are about: drawn as SQL, and evaluated row by row without Arrow."""

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Row = Mapping[str, Any]
Truth = bool | None


@dataclass(frozen=True, slots=True)
class Column:
    type: pa.DataType
    values: Sequence[Any]
    literals: Mapping[str, Any]
    """Their values by their SQL."""


NAN = float("nan")
MAX = 2**63 - 1
UTC_NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
NOON = UTC_NOON.replace(tzinfo=None)
US = dt.timedelta(microseconds=1)
LEAP, FIRST, LAST = dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)

COLUMNS = {
    "id": Column(
        pa.int64(),
        (-MAX - 1, -7, 0, 1, MAX),
        {f"{-MAX - 1}": -MAX - 1, "- 7": -7, "0": 0, "+1": 1, "007": 7, f"{MAX}": MAX},
    ),
    "tiny": Column(pa.int8(), (-128, -1, 0, 1, 127), {str(n): n for n in range(-8, 8)}),
    "price": Column(
        pa.decimal128(10, 2),
        [Decimal(text) for text in ("-1.50", "0.00", "0.01", "1.50", "99999999.99")],
        {text: Decimal(text) for text in ("1.5", "-1.50", "0", ".01", "2", "99999999.99")},
    ),
    "ratio": Column(
        pa.float32(),
        (NAN, -0.0, 0.0, 0.10000000149011612, 1.5, -math.inf, math.inf, 16777216.0),
        {"0": 0.0, "-0.0": 0.0, "0.1": 0.1, "1.5e0": 1.5, "-2E38": -2e38, "1e300": 1e300, "16777217.0": 16777217.0},
    ),
    "score": Column(
        pa.float64(),
        (NAN, -0.0, 0.0, 0.1, 1e300, -math.inf, float(2**53)),
        {"-0e0": 0.0, "0.1": 0.1, "1e300": 1e300, f"{2**53 + 1}": float(2**53)}
        | {f"{n}.5": n + 0.5 for n in range(9)},
    ),
    "name": Column(
        pa.string(),
        ("", "a", "A", "a'b", "a\\b", "a\nb", "é", "日本", "\uffff", "🦆"),
        {r"''": "", "'a'": "a", r"'a\'b'": "a'b", r"'a\\b'": r"a\b", "'é'": "é", "'\uffff'": "\uffff", "'🦆'": "🦆"},
    ),
    "ok": Column(pa.bool_(), (True, False), {"TRUE": True, "false": False}),
    "day": Column(
        pa.date32(),
        (FIRST, LEAP, LAST),
        {"date'2024-02-29'": LEAP, "'2024-02-29'": LEAP, "DATE '0001-01-01'": FIRST},
    ),
    "at": Column(
        pa.timestamp("us", "UTC"),
        (UTC_NOON, UTC_NOON - US, UTC_NOON.replace(year=1896)),
        {"TIMESTAMP '2024-02-29 14:00:00+02:00'": UTC_NOON, "'2024-02-29T11:59:59.999999Z'": UTC_NOON - US},
    ),
    "local": Column(
        pa.timestamp("us"),
        (NOON, NOON + US, NOON.replace(year=1896)),
        {"timestamp_ntz '2024-02-29 12:00:00'": NOON, "TIMESTAMP '2024-02-29T12:00:00.000001'": NOON + US},
    ),
}  # fmt: skip

SCHEMA = pa.schema([(name, column.type) for name, column in COLUMNS.items()])

rows = st.lists(
    st.fixed_dictionaries({name: st.none() | st.sampled_from(column.values) for name, column in COLUMNS.items()}),
    max_size=12,
)


@dataclass(frozen=True, slots=True)
class Where:
    sql: str
    truth: Callable[[Row], Truth]
    binding: int = 3
    """How tightly the SQL binds: 0 as OR, 1 as AND, 2 as NOT, 3 as a comparison."""

    def below(self, binding: int) -> str:
        return self.sql if self.binding >= binding else f"({self.sql})"


def batch_of(found: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(row) for row in found], schema=SCHEMA)


def _order(value: Any) -> Any:
    """NaN is the greatest number; text is ordered by its code points."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def _compare(left: Any, operator: str, right: Any) -> Truth:
    if operator == "<=>":
        return (left is None) == (right is None) and (left is None or _order(left) == _order(right))
    if left is None or right is None:
        return None
    left, right = _order(left), _order(right)
    truths: dict[str, bool] = {
        "=": left == right, "==": left == right, "<>": left != right, "!=": left != right,
        "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
    }  # fmt: skip
    return truths[operator]


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _all(truths: Sequence[Truth]) -> Truth:
    return False if False in truths else None if None in truths else True


def _any(truths: Sequence[Truth]) -> Truth:
    return _not(_all([_not(truth) for truth in truths]))


OPERATORS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")


def each_comparison() -> list[Where]:
    """Each column with each of its literals by each operator."""
    return [
        Where(f"{name} {operator} {sql}", lambda row, n=name, o=operator, v=value: _compare(row[n], o, v))  # type: ignore[misc]
        for name, column in COLUMNS.items()
        for operator in OPERATORS
        for sql, value in column.literals.items()
    ]


def each_value() -> list[Row]:
    """Each value of each column, and null, beside values of the other columns in turn."""
    return [
        {other: each.values[place % len(each.values)] for other, each in COLUMNS.items()} | {name: value}
        for name, column in COLUMNS.items()
        for place, value in enumerate((None, *column.values))
    ]


@st.composite
def _comparison(draw: st.DrawFn) -> Where:
    name = draw(st.sampled_from(list(COLUMNS)))
    column = draw(st.sampled_from([name, name.upper(), f"`{name}`"]))
    literals = st.sampled_from([*COLUMNS[name].literals.items(), ("NULL", None)])
    negation, word = draw(st.sampled_from([("", ""), ("NOT ", "not ")]))
    shape = draw(st.sampled_from(["compare", "mirror", "between", "in", "null"]))
    if shape == "null":
        return Where(f"{column} is {negation}NULL", lambda row: (row[name] is None) != bool(negation))
    if shape == "between":
        (low_sql, low), (high_sql, high) = draw(literals), draw(literals)
        return _negated(
            Where(
                f"{column} {word}between {low_sql} AND {high_sql}",
                lambda row: _all([_compare(row[name], ">=", low), _compare(row[name], "<=", high)]),
            ),
            bool(word),
        )
    if shape == "in":
        typed = literals.filter(lambda literal: name not in ("at", "local") or not literal[0].startswith("'"))
        listed = draw(st.lists(typed, min_size=1, max_size=14))
        return _negated(
            Where(
                f"{column} {word}In ({', '.join(sql for sql, _ in listed)})",
                lambda row: _any([_compare(row[name], "=", value) for _, value in listed]),
            ),
            bool(word),
        )
    operator = draw(st.sampled_from(OPERATORS))
    sql, value = draw(literals)
    if shape == "mirror":
        return Where(f"{sql}{operator}{column}", lambda row: _compare(value, operator, row[name]))
    return Where(f"{column} {operator} {sql}", lambda row: _compare(row[name], operator, value))


def _negated(where: Where, is_negated: bool) -> Where:
    return Where(where.sql, lambda row: _not(where.truth(row))) if is_negated else where


def _combined(inner: st.SearchStrategy[Where]) -> st.SearchStrategy[Where]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        inner.map(lambda w: Where(f"NOT {w.below(2)}", lambda row: _not(w.truth(row)), 2)),
        several.map(
            lambda ws: Where(" AND ".join(w.below(2) for w in ws), lambda row: _all([w.truth(row) for w in ws]), 1)
        ),
        several.map(
            lambda ws: Where("\n or ".join(w.below(1) for w in ws), lambda row: _any([w.truth(row) for w in ws]), 0)
        ),
    )


wheres = st.recursive(
    st.one_of(
        _comparison(),
        st.sampled_from([("true", True), ("FALSE", False), ("NULL", None)]).map(lambda c: Where(c[0], lambda _: c[1])),
        st.just(Where("ok", lambda row: row["ok"])),
    ),
    _combined,
    max_leaves=6,
)
