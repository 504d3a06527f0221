"""Every target in the normal run: real bytes, damaged ones, and any. More of them: ``python -m tests.fuzz``."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.bounds import ROOM_BYTES
from tests.fuzz.targets import NAMES, load
from tests.support.memory import taken_bytes

everyone = pytest.mark.parametrize("name", NAMES)


@everyone
def test_what_real_encoders_write_is_taken(name: str) -> None:
    target = load(name)
    seeds = list(target.seeds())
    assert seeds
    for seed in seeds:
        assert target.target(seed), seed


@everyone
@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_the_one_declared_error(name: str, data: bytes) -> None:
    assert taken_bytes(partial(load(name).target, data)) <= ROOM_BYTES


@everyone
@given(st.data())
def test_damaged_bytes_are_a_value_or_the_one_declared_error(name: str, data: st.DataObject) -> None:
    seeds = list(load(name).seeds())
    damaged = bytearray(data.draw(st.sampled_from(seeds)))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(damaged)))
        stop = data.draw(st.integers(start, min(start + 9, len(damaged))))
        damaged[start:stop] = data.draw(st.binary(max_size=9) | st.sampled_from(LENGTHS) | st.sampled_from(seeds))
    assert taken_bytes(partial(load(name).target, bytes(damaged))) <= ROOM_BYTES


LENGTHS = (
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xdc\x0f\xff" * 300,
    b"\x91" * 1000,
    b"\xff" * 8,
    b"\xff\xff\xff\x7f" * 2,
)
"""Headers that declare much: arrays, maps, texts, bytes; nested ones; sizes."""
