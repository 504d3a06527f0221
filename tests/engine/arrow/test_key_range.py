"""Ranges of keys: bytes that compare as the values do."""

from datetime import date, datetime
from decimal import Context, Decimal, Inexact, localcontext
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.arrow.key_range import RANGE_BYTES, meet, range_of, union, value_of

TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(max_size=20)),
    (pa.large_binary(), st.binary(max_size=20) | st.binary(max_size=20).map(lambda some: b"\xff" * 16 + some)),
    (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    (pa.timestamp("us", "UTC"), st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))),  # noqa: DTZ001
    (pa.decimal128(38, 3), st.decimals(-(10**34), 10**34, places=3)),
]


@pytest.mark.parametrize(
    ("type_", "values"), TYPES, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
@given(data=st.data())
def test_a_range_holds_each_of_its_values_and_ranges_in_order_do_not_meet(type_, values, data):
    ordered = sorted(data.draw(st.lists(values, min_size=1, max_size=6)))
    whole = range_of(pa.array(ordered, type_))
    assert whole is not None
    single = [range_of(pa.array([value], type_)) for value in ordered]
    for each in single:
        assert each is not None
        assert meet(each, whole)
        assert meet(whole, each)
    for (low, below), (high, above) in pairwise(zip(single, ordered, strict=True)):
        assert low is not None
        assert high is not None
        assert low[0] <= high[0]
        if below != above and not isinstance(below, str | bytes):
            assert not meet(low, high)
        if not isinstance(below, str | bytes):
            assert value_of(low[0], type_) == pa.scalar(below, type_).as_py()
    assert union(single[0], single[-1]) == whole


def test_a_bound_that_python_has_no_value_for_is_none_and_one_of_text_stays_bytes():
    seconds = pa.scalar(2**40, pa.int64()).cast(pa.timestamp("s"))
    found = range_of(pa.array([seconds]))
    assert found is not None
    assert value_of(found[0], seconds.type) is None
    assert value_of(b"a\xc3", pa.string()) == b"a\xc3"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["b", "a"], (b"a", b"b")),
        (["a" * 16], (b"a" * 16, b"a" * 16)),
        (["a" * 17], (b"a" * 16, b"a" * 15 + b"b")),
        (["é" * 9], (("é" * 8).encode(), ("é" * 7).encode() + b"\xc3\xaa")),
    ],
)
def test_a_long_text_is_cut_below_and_rounded_up_above(texts, expected):
    assert range_of(pa.chunked_array([texts])) == expected


def test_what_cannot_be_rounded_up_is_unbounded():
    found = range_of(pa.array([b"\xff" * (RANGE_BYTES + 1)]))
    assert found == (b"\xff" * RANGE_BYTES, None)
    assert range_of(pa.array([b"ab" + b"\xff" * 20])) == (b"ab" + b"\xff" * 14, b"ac")
    assert union(found, (b"a", b"b")) == (b"a", None)
    assert meet(found, (b"\xff" * 40, b"\xff" * 40))
    assert not meet((b"", b"b"), (b"c", None))


def test_an_empty_column_has_no_range():
    assert range_of(pa.array([], pa.int64())) is None
    assert union(None, (b"a", b"b")) == union((b"a", b"b"), None) == (b"a", b"b")


def test_decimals_are_exact_whatever_the_context_of_the_process():
    numbers = pa.array([Decimal("9" * 38), Decimal("1" * 38)], pa.decimal128(38, 0))
    with localcontext(Context(prec=3, traps=[Inexact])):
        found = range_of(numbers)
    assert found == tuple((int(digit * 38) + (1 << 127)).to_bytes(16) for digit in "19")


def test_decimals_compare_by_value_at_the_scale_of_their_column():
    low, high = (range_of(pa.array([Decimal(text)], pa.decimal128(10, 2))) for text in ("-1.50", "2"))
    assert low is not None
    assert high is not None
    assert low < high
