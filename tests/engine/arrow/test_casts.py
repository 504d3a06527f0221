import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tallymark.engine.arrow.casts import is_lossless

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
NUMBERS = (*INTEGERS, pa.float32(), pa.float64(), *(pa.decimal128(p, s) for p, s in ((3, 0), (5, 2), (19, 0), (38, 9))))


def extremes(kind):
    """The values of an integer type that need most room."""
    bits = kind.bit_width
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, 2**bits - 1)
    return pa.array([low, high, high - 1], kind)


@pytest.mark.parametrize("source", INTEGERS, ids=str)
@pytest.mark.parametrize("target", NUMBERS, ids=str)
def test_integers_are_cast_to_a_type_exactly_if_it_holds_their_extremes(source, target):
    values = extremes(source)
    try:
        came_back = values.cast(target).cast(source)
        fits = came_back.equals(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        fits = False
    assert is_lossless(source, target) == fits


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.int64()),
        (pa.decimal128(5, 2), pa.decimal128(5, 1)),
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
        (pa.decimal128(5, 2), pa.float64()),
        (pa.float64(), pa.decimal128(38, 10)),
        (pa.bool_(), pa.int8()),
        (pa.int8(), pa.bool_()),
        (pa.string(), pa.binary()),
        (pa.date32(), pa.timestamp("us")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.date32()),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int32(), nullable=False))),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int32())])),
        (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int32())),
        (pa.dictionary(pa.int32(), pa.string()), pa.int32()),
    ],
    ids=str,
)
def test_what_may_lose_a_value_or_its_meaning_is_not_cast(source, target):
    assert not is_lossless(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.float32(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(6, 3)),
        (pa.large_string(), pa.string()),
        (pa.binary(), pa.large_binary()),
        (pa.timestamp("s", "UTC"), pa.timestamp("us", "Asia/Tokyo")),
        (pa.time32("ms"), pa.time64("us")),
        (pa.duration("s"), pa.duration("us")),
        (pa.string(), pa.dictionary(pa.int32(), pa.string())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.large_string(), pa.int64())),
        (pa.struct([pa.field("a", pa.int8(), nullable=False)]), pa.struct([("a", pa.int16())])),
    ],
    ids=str,
)
def test_what_keeps_each_value_can_be_cast(source, target):
    assert is_lossless(source, target)
    assert pc.cast(pa.nulls(1, source), target).type == target
