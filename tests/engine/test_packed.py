"""msgpack from storage."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.packed import unpack
from tests.support.memory import taken_bytes

SIZE = 4000

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.binary()
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
values = st.recursive(scalars | texts, lambda some: st.lists(some) | st.dictionaries(texts, some))


@given(values)
def test_a_value_comes_back_as_it_was_packed(value):
    assert unpack(msgpack.packb(value)) == value


@given(values, st.data())
def test_a_value_that_lost_its_end_is_refused(value, data):
    packed = msgpack.packb(value)
    with pytest.raises(ValueError):
        unpack(packed[: data.draw(st.integers(0, len(packed) - 1))])


def test_a_value_with_more_behind_it_is_refused():
    with pytest.raises(ValueError):
        unpack(b"\x01\x02")


@pytest.mark.parametrize(
    "header", [b"\xdd" + SIZE.to_bytes(4, "big"), b"\xdc" + SIZE.to_bytes(2, "big"), b"\xdd\xff\xff\xff\xff"]
)
def test_arrays_that_declare_more_than_there_is_take_no_memory(header):
    nested = (header * SIZE)[:SIZE]

    def refuse() -> None:
        with pytest.raises(ValueError):
            unpack(nested)

    assert taken_bytes(refuse) < 100 * SIZE


def test_keys_of_maps_are_text():
    with pytest.raises(ValueError):
        unpack(msgpack.packb({1: 2}))
