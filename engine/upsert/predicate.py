"""Predicate of a delete, evaluated without Spark and equal to Spark's answer.

Owns: SQL's three-valued logic over Arrow rows, what partition values and key ranges prove of a file, and the canonical
text. Does not own: the grammar and which literals a column takes (``where``), and which files and rows are read.

NaN is not a literal. Therefore Spark's order, in which NaN is the greatest number, is ``<`` and ``<=`` of IEEE and the
negations of these.
"""

import operator
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from tallymark.engine.arrow.casts import is_string
from tallymark.engine.partitions.path import PartitionValue

Proof = Literal["all", "none", "some"]

Value = bool | int | float | str | Decimal | date
"""A literal. An instant is a datetime in UTC, a timestamp without zone a datetime without one."""

KeyRange = tuple[Any, Any]
"""Inclusive bounds of a column's values in a file; None is unbounded. They need not be attained."""

Truths = frozenset[bool | None]
"""Results that a row can have: TRUE, FALSE and NULL."""

_RANK: Mapping[bool | None, int] = {False: 0, None: 1, True: 2}


class Facts(NamedTuple):
    """What is known of a file: see ``Predicate.proof``."""

    values: Mapping[str, PartitionValue]
    ranges: Mapping[str, KeyRange]


class Predicate(ABC):
    """A condition on rows. Made by ``where.parse`` for one schema; can be compared and pickled.

    ``str`` is its canonical form: fully parenthesised SQL, which ``parse`` reads as an equal predicate and Spark as the
    same condition. The one exception is ``NULL``, which Spark takes as a part of a condition, and not as all of it.
    """

    operands: "tuple[Predicate, ...]" = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once, as the schema spells them."""
        return tuple(dict.fromkeys(column for operand in self.operands for column in operand.columns))

    @property
    def depth(self) -> int:
        """Levels of parentheses of the canonical form, at most."""
        return 1 + max((operand.depth for operand in self.operands), default=0)

    def mask(self, batch: pa.RecordBatch) -> "pa.Array[Any]":
        """Return a boolean per row: whether the predicate is TRUE, and neither FALSE nor NULL."""
        return self.evaluate(batch).fill_null(False)

    def proof(self, values: Mapping[str, PartitionValue], ranges: Mapping[str, KeyRange]) -> Proof:
        """Return what is proven of a file's rows: ``all`` match, ``none`` matches, or ``some`` may match.

        Args:
            values: of partition columns, the same in every row. None in a text column is null or the empty string,
                since they share a path.
            ranges: of columns that are never null in the file. Bounds of floats are ignored, because of NaN. A bound of
                a text column may be bytes, cut within a character.
        """
        truths = self.truths(Facts(values, ranges))
        if True not in truths:
            return "none"
        return "all" if len(truths) == 1 else "some"

    @abstractmethod
    def evaluate(self, batch: pa.RecordBatch) -> "pa.Array[Any]":
        """Return TRUE, FALSE or NULL per row."""

    @abstractmethod
    def truths(self, facts: Facts) -> Truths:
        """Return at least the results that the file's rows have."""


@dataclass(frozen=True)
class Constant(Predicate):
    value: bool | None

    def evaluate(self, batch: pa.RecordBatch) -> "pa.Array[Any]":
        return pa.repeat(pa.scalar(self.value, pa.bool_()), batch.num_rows)

    def truths(self, facts: Facts) -> Truths:
        return frozenset({self.value})

    def __str__(self) -> str:
        return _sql(self.value)


@dataclass(frozen=True)
class Combination(Predicate):
    word: Literal["AND", "OR", "NOT"]
    operands: tuple[Predicate, ...]
    """One of NOT, two or more of the others."""

    def evaluate(self, batch: pa.RecordBatch) -> "pa.Array[Any]":
        results = (operand.evaluate(batch) for operand in self.operands)
        if self.word == "NOT":
            return pc.invert(next(results))
        return reduce(pc.and_kleene if self.word == "AND" else pc.or_kleene, results)

    def truths(self, facts: Facts) -> Truths:
        results = (operand.truths(facts) for operand in self.operands)
        if self.word == "NOT":
            return frozenset(None if truth is None else not truth for truth in next(results))
        choose = min if self.word == "AND" else max
        return reduce(
            lambda ours, more: frozenset(choose(a, b, key=_RANK.__getitem__) for a in ours for b in more), results
        )

    def __str__(self) -> str:
        if self.word == "NOT":
            return f"(NOT {self.operands[0]})"
        return f"({f' {self.word} '.join(map(str, self.operands))})"


_MASKS: "Mapping[str, Callable[[Any, Any], pa.Array[Any]]]" = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": lambda column, value: pc.invert(pc.less_equal(column, value)),
    ">=": lambda column, value: pc.invert(pc.less(column, value)),
}
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Comparison(Predicate):
    column: str
    type: pa.DataType
    """The column's type, or double for a float: Spark compares it so with any literal."""
    operator: str
    """``IS NULL`` without a literal, ``=`` with the literals that it is one of, or an order with one."""
    literals: tuple[Value, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def evaluate(self, batch: pa.RecordBatch) -> "pa.Array[Any]":
        column = batch.column(self.column)
        if self.operator == "IS NULL":
            return column.is_null()
        column = column.cast(self.type)
        if len(self.literals) == 1:
            return _MASKS[self.operator](column, pa.scalar(self.literals[0], self.type))
        if arrow_types.is_floating(self.type):
            column = pc.add(column, 0.0)  # makes 0.0 of -0.0, since is_in compares bits
        found = pc.is_in(column, value_set=pa.array(self.literals, self.type))
        result: pa.Array[Any] = pc.if_else(column.is_valid(), found, pa.scalar(None, pa.bool_()))
        return result

    def truths(self, facts: Facts) -> Truths:
        if self.column in facts.values:
            value = facts.values[self.column]
            if value is not None:
                return self._within(value, value)
            return self._of_null() | (self._within("", "") if is_string(self.type) else frozenset())
        if self.column in facts.ranges:
            return self._within(*facts.ranges[self.column])
        return self._of_null() | self._within(None, None)

    def _of_null(self) -> Truths:
        return frozenset({True if self.operator == "IS NULL" else None})

    def _within(self, lower: Any, upper: Any) -> Truths:
        """Return the results of the values between two bounds."""
        if self.operator == "IS NULL":
            return frozenset({False})
        if arrow_types.is_floating(self.type):
            return frozenset({True, False})
        low, high = (None if bound is None else _key(bound) for bound in (lower, upper))
        if self.operator != "=":
            holds, is_below = _ORDERS[self.operator], self.operator.startswith("<")
            at_low = is_below if low is None else holds(low, self._keys[0])
            return frozenset({at_low, not is_below if high is None else holds(high, self._keys[0])})
        start = 0 if low is None else bisect_left(self._keys, low)
        stop = len(self._keys) if high is None else bisect_right(self._keys, high)
        if start == stop:
            return frozenset({False})
        return frozenset({True} if low is not None and low == high else {True, False})

    @cached_property
    def _keys(self) -> Sequence[Any]:
        return sorted(map(_key, self.literals))

    def __str__(self) -> str:
        column, literals = f"`{self.column.replace('`', '``')}`", ", ".join(map(_sql, self.literals))
        if len(self.literals) > 1:
            return f"({column} IN ({literals}))"
        return f"({column} {self.operator}{' ' if literals else ''}{literals})"


def _key(value: Any) -> Any:
    """Return a value that Python orders as Spark orders the given one: text as bytes, times in one zone."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value


def _sql(value: Value | None) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("\\", r"\\").replace("'", r"\'") + "'"
        case Decimal():
            return format(value, "f")
        case datetime():
            return f"TIMESTAMP{'' if value.tzinfo else '_NTZ'} '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return repr(value)
