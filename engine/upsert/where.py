"""Grammar of ``where``: the part of SQL that selects rows by comparing columns with literals.

Owns: the text of a predicate, and which literals a column takes. What releases, modes or session time zones of Spark
answer differently is refused. Does not own: the answer (``predicate``).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from math import isinf
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.types as arrow_types

from tallymark.engine.arrow.casts import is_string
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.upsert.predicate import Combination, Comparison, Constant, Predicate, Value

CHARS_MAX = 65_536
"""Characters of a predicate, also in its canonical form. A list of 1,500 UUIDs fits."""

DEPTH_MAX = 50
"""Levels of parentheses. The parser makes six calls per level, and Python allows a thousand."""

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.])
      | (?P<text>'[^'\\]*(?:\\.[^'\\]*)*')
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*|`[^`]+(?:``[^`]*)*`)
      | (?P<symbol><=>|==|<>|!=|<=|>=|[<>=(),+-])""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset({"AND", "BETWEEN", "FALSE", "IN", "IS", "NOT", "NULL", "OR", "TRUE"})
_PREFIXES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})
_OPERATORS = {sign: sign for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")} | {"==": "=", "!=": "<>"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}

_GRAMMAR = (
    "a where compares a column with a literal by =, <>, <, <=, >, >=, <=>, [NOT] IN (...), [NOT] BETWEEN ... AND ... "
    "or IS [NOT] NULL, and combines conditions by AND, OR, NOT and parentheses"
)
_HINTS = {
    ".": "a nested field cannot be compared; compare a top-level column",
    '"': "write text in single quotes, and a column's name in backquotes",
    "'": r"the text has no closing quote; add it, and write a quote within the text as \'",
    "`": "the name is empty or has no closing backquote; complete it",
}


class _Token(NamedTuple):
    kind: str
    """A group of ``_TOKEN``, ``keyword`` or ``end``; of a literal: ``constant``, ``integer``, ``decimal``, ``double``,
    ``text`` or the prefix of a quoted one.
    """
    text: str
    position: int


def parse(text: str, schema: pa.Schema) -> Predicate:
    """Return the predicate of a ``where`` on rows of a table of this schema.

    Raises:
        InvalidRequest: names the text, the position, the rule and the remedy.
    """
    return _Parser(text, schema).parse()


class _Parser:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema
        self._depth = 0
        self._check_size(text, depth=0)
        if invalid := re.search(r"[\ud800-\udfff]", text):
            raise self._refused(invalid.start(), f"{invalid.group()!r} is not a Unicode character; leave it out")
        self._tokens = [*self._scan(), _Token("end", "the end", len(text))]
        self._index = 0

    def parse(self) -> Predicate:
        predicate = self._any_of()
        if self._token.kind != "end":
            raise self._unexpected("AND, OR or the end")
        self._check_size(str(predicate), predicate.depth)
        return predicate

    def _scan(self) -> Iterator[_Token]:
        position = 0
        while position < len(self._text):
            match = _TOKEN.match(self._text, position)
            if match is None:
                word = re.findall(r"[0-9][\w.]*|.", self._text[position : position + 80], re.DOTALL)[0]
                raise self._refused(position, _HINTS.get(word, f"{word!r} is not a part of the grammar; {_GRAMMAR}"))
            kind, found = str(match.lastgroup), match.group()
            if kind == "name" and found.upper() in _KEYWORDS:
                kind, found = "keyword", found.upper()
            if kind == "text" and self._text.startswith("'", match.end()):
                raise self._refused(match.end(), r"Spark 3 and Spark 4 read '' within a text differently; write \'")
            if kind != "space":
                yield _Token(kind, found, position)
            position = match.end()

    @property
    def _token(self) -> _Token:
        return self._tokens[self._index]

    def _next(self) -> _Token:
        self._index += 1
        return self._tokens[self._index - 1]

    def _takes(self, word: str) -> bool:
        """Return whether the next token is this keyword or symbol; if so, continue after it."""
        is_it = self._token.kind in ("keyword", "symbol") and self._token.text == word
        self._index += is_it
        return is_it

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise self._unexpected(word)

    def _any_of(self) -> Predicate:
        return self._joined("OR", lambda: self._joined("AND", self._negated))

    def _joined(self, word: Literal["AND", "OR"], operand: Callable[[], Predicate]) -> Predicate:
        operands = [operand()]
        while self._takes(word):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else Combination(word, tuple(operands))

    def _negated(self) -> Predicate:
        is_negated = False
        while self._takes("NOT"):
            is_negated = not is_negated
        condition = self._condition()
        return _not(condition) if is_negated else condition

    def _condition(self) -> Predicate:
        if self._takes("("):
            self._depth += 1
            self._check_size("", self._depth)
            inner = self._any_of()
            self._expect(")")
            self._depth -= 1
            return inner
        if not self._at_literal():
            return self._condition_on(self._column())
        literal = self._literal()
        if operator := self._operator():
            return self._compared(self._column(), _MIRRORED.get(operator, operator), [literal])
        if literal.kind != "constant":
            raise self._unexpected("a comparison with a column")
        return Constant(_CONSTANTS[literal.text])

    def _condition_on(self, column: "pa.Field[Any]") -> Predicate:
        if operator := self._operator():
            return self._compared(column, operator, [self._literal()])
        is_null = self._takes("IS")
        is_negated = self._takes("NOT")
        if is_null:
            self._expect("NULL")
            condition = _is_null(column)
        elif self._takes("BETWEEN"):
            least = self._compared(column, ">=", [self._literal()])
            self._expect("AND")
            condition = Combination("AND", (least, self._compared(column, "<=", [self._literal()])))
        elif self._takes("IN"):
            condition = self._compared(column, "=", self._list(column))
        elif is_negated or not arrow_types.is_boolean(column.type):
            raise self._unexpected("IN or BETWEEN" if is_negated else f"a comparison, since {_described(column)}")
        else:
            condition = Comparison(column.name, column.type, "=", (True,))
        return _not(condition) if is_negated else condition

    def _list(self, column: "pa.Field[Any]") -> list[_Token]:
        self._expect("(")
        literals = [self._literal()]
        while self._takes(","):
            literals.append(self._literal())
        self._expect(")")
        for literal in literals:
            if literal.kind == "text" and arrow_types.is_timestamp(column.type):
                raise self._refused(
                    literal.position, "without ANSI mode, Spark compares texts here; write TIMESTAMP before it"
                )
        return literals

    def _column(self) -> "pa.Field[Any]":
        kind, text, position = self._token
        if kind != "name" or self._tokens[self._index + 1].text == "(":
            raise self._unexpected("a column (in backquotes where it is named like a keyword)")
        self._index += 1
        name = text[1:-1].replace("``", "`") if text[0] == "`" else text
        found = [field for field in self._schema if field.name.lower() == name.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            names = " or ".join(repr(field.name) for field in found)
            raise self._refused(position, f"{name!r} is {names}, since Spark ignores case; rename one of them")
        near = get_close_matches(name, self._schema.names) or self._schema.names[:9]
        raise self._refused(position, f"{_excerpt(name)!r} is not a column; is it {' or '.join(map(repr, near))}?")

    def _operator(self) -> str | None:
        operator = _OPERATORS.get(self._token.text)
        self._index += operator is not None
        return operator

    def _at_literal(self) -> bool:
        kind, text, _ = self._token
        if kind == "name":
            return text.upper() in _PREFIXES and self._tokens[self._index + 1].kind == "text"
        return kind in ("number", "text") or text in _CONSTANTS or text in ("+", "-")

    def _literal(self) -> _Token:
        """Return the literal as one token: a number with its sign, a quoted one with its prefix as the kind."""
        if not self._at_literal():
            raise self._unexpected("a literal")
        kind, text, position = self._next()
        if kind == "name":
            return _Token(text.upper(), self._next().text, position)
        if kind == "keyword":
            return _Token("constant", text, position)
        if kind == "symbol":
            if self._token.kind != "number":
                raise self._unexpected("a number")
            kind, text = "number", text + self._next().text
        if kind == "number":
            kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
        return _Token(kind, text, position)

    def _compared(self, column: "pa.Field[Any]", operator: str, literals: Sequence[_Token]) -> Predicate:
        """Return the comparison with a literal, or whether the column is equal to one of several."""
        known = [literal for literal in literals if literal.text != "NULL"]
        if operator == "<>":
            return _not(self._compared(column, "=", literals))
        if operator == "<=>":
            if not known:
                return _is_null(column)
            return Combination("AND", (_not(_is_null(column)), self._compared(column, "=", literals)))
        if not known:
            return Constant(None)
        type_ = pa.float64() if arrow_types.is_floating(column.type) else column.type
        values = tuple(self._value(literal, column) for literal in known)
        condition = Comparison(column.name, type_, operator, values)
        return condition if len(known) == len(literals) else Combination("OR", (condition, Constant(None)))

    def _value(self, literal: _Token, column: "pa.Field[Any]") -> Value:
        kind = next((kind for kind in _KINDS if kind.is_kind(column.type)), None)
        if kind is None:
            raise self._refused(literal.position, f"{_described(column)}; only IS [NOT] NULL applies to it")
        try:
            if literal.kind not in kind.literals:
                raise ValueError("it is of another type")
            return kind.value(literal, column.type)
        except (ValueError, OverflowError) as error:
            problem = f"which {_excerpt(literal.text)} does not fit: {str(error)[:200]}; give {kind.remedy}"
            raise self._refused(literal.position, f"{_described(column)}, {problem}") from error

    def _check_size(self, text: str, depth: int) -> None:
        if len(text) > CHARS_MAX or depth > DEPTH_MAX:
            raise self._refused(
                0,
                f"it is longer than {CHARS_MAX:,} characters, all parentheses included, or nested deeper than "
                f"{DEPTH_MAX} levels; split it",
            )

    def _unexpected(self, wanted: str) -> InvalidRequest:
        return self._refused(self._token.position, f"expected {wanted}, found {_excerpt(self._token.text)}; {_GRAMMAR}")

    def _refused(self, position: int, problem: str) -> InvalidRequest:
        return InvalidRequest(f"where={_excerpt(self._text, position)!r}, character {position + 1}: {problem}")


def _not(condition: Predicate) -> Predicate:
    return Combination("NOT", (condition,))


def _is_null(column: "pa.Field[Any]") -> Predicate:
    return Comparison(column.name, column.type, "IS NULL")


def _described(column: "pa.Field[Any]") -> str:
    return f"column {column.name!r} is {column.type}"


def _excerpt(text: str, position: int = 0) -> str:
    start = max(0, position - 40)
    return f"{'...' if start else ''}{text[start : start + 80]}{'...' if len(text) > start + 80 else ''}"


def _boolean(literal: _Token, type_: pa.DataType) -> bool:
    return literal.text == "TRUE"


def _integer(literal: _Token, type_: pa.DataType) -> int:
    return int(pa.scalar(int(literal.text), type_).as_py())


def _decimal(literal: _Token, type_: pa.Decimal128Type) -> Decimal:
    number = Decimal(literal.text)
    if -int(number.as_tuple().exponent) > type_.scale:
        raise ValueError(f"it has more than {type_.scale} digits after the point")
    if literal.kind == "integer" and (10 if abs(number) < 2**31 else 20) + type_.scale > 38:
        raise ValueError("Spark makes a decimal of an int or a long from it, and rounds; append .0")
    return Decimal(pa.scalar(number, type_).as_py())


def _double(literal: _Token, type_: pa.DataType) -> float:
    number = float(literal.text) + 0.0  # makes 0.0 of -0.0
    if isinf(number):
        raise ValueError("it is greater than any double")
    if literal.kind == "integer" and arrow_types.is_float32(type_) and pa.scalar(number, type_).as_py() != number:
        raise ValueError("without ANSI mode, Spark rounds it to a float; append .0")
    return number


def _string(literal: _Token, type_: pa.DataType) -> str:
    if "\\" in re.sub(r"\\[\\']", "", literal.text):
        raise ValueError(r"only \\ and \' have a backslash before them; any other character is written as it is")
    return re.sub(r"\\(.)", r"\1", literal.text[1:-1])


def _date(literal: _Token, type_: pa.DataType) -> date:
    if not re.fullmatch(r"'[0-9]{4}-[0-9]{2}-[0-9]{2}'", literal.text):
        raise ValueError("it is not of that form")
    return date.fromisoformat(literal.text[1:-1])


_MOMENT = re.compile(
    r"'[0-9]{4}-[0-9]{2}-[0-9]{2}[ T](?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
    r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?'"
)


def _timestamp(literal: _Token, type_: Any) -> datetime:
    match = _MOMENT.fullmatch(literal.text)
    if match is None:
        raise ValueError("it is not of that form")
    if literal.kind == "TIMESTAMP_NTZ" and type_.tz is not None:
        raise ValueError("it is of another type")
    if (match["zone"] is None) != (type_.tz is None):
        raise ValueError(
            "it has a zone where the column has none, or none where the column has one: no session's is used"
        )
    moment = datetime.fromisoformat(literal.text[1:-1])
    if type_.tz is None:
        return moment
    if abs(moment.utcoffset() or timedelta()) > timedelta(hours=18):
        raise ValueError("an offset is 18 hours at most")
    return moment.astimezone(UTC)


class _Kind(NamedTuple):
    """A kind of columns, and the literals that it takes."""

    is_kind: Callable[[pa.DataType], bool]
    literals: Sequence[str]
    value: Callable[[_Token, Any], Value]
    """Raises ValueError or OverflowError for a literal that does not fit the column's type."""
    remedy: str


_KINDS = (
    _Kind(arrow_types.is_boolean, ("constant",), _boolean, "TRUE or FALSE"),
    _Kind(arrow_types.is_signed_integer, ("integer",), _integer, "a whole number of its range"),
    _Kind(
        arrow_types.is_decimal128,
        ("integer", "decimal"),
        _decimal,
        "a number with at most its digits and without an exponent",
    ),
    _Kind(arrow_types.is_floating, ("integer", "decimal", "double"), _double, "a number"),
    _Kind(is_string, ("text",), _string, "text in single quotes"),
    _Kind(arrow_types.is_date32, ("text", "DATE"), _date, "DATE 'YYYY-MM-DD'"),
    _Kind(
        arrow_types.is_timestamp,
        ("text", "TIMESTAMP", "TIMESTAMP_NTZ"),
        _timestamp,
        "TIMESTAMP 'YYYY-MM-DD HH:MM:SS.ffffff', or the same with Z or an offset as +02:00 if the column has a zone",
    ),
)
