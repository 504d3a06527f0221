"""Instants are real clock times and only grow."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.instant import FLOOR, instant_time, parse_instant

LAST = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)

moments = st.datetimes(datetime(1970, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
instants = moments.map(instant_time)


@given(moments, instants)
def test_an_instant_is_past_the_one_before_and_not_behind_the_clock(moment, before):
    instant = instant_time(moment, after=before)
    assert instant > before
    assert instant >= instant_time(moment)
    assert instant in (instant_time(moment), instant_time(parse_instant(before) + timedelta(milliseconds=1)))


@given(moments)
def test_an_instant_is_its_moment_to_the_millisecond(moment):
    instant = instant_time(moment)
    assert len(instant) == 17
    assert parse_instant(instant) == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@pytest.mark.parametrize(
    ("before", "next_one"),
    [
        ("20240229235959999", "20240301000000000"),
        ("20231231235959999", "20240101000000000"),
        ("20230228235959999", "20230301000000000"),
        ("20240101000059999", "20240101000100000"),
        ("20240101005959999", "20240101010000000"),
        ("20240101000000009", "20240101000000010"),
        ("20161231235959999", "20170101000000000"),
        (FLOOR, "19700101000000001"),
    ],
)
def test_the_next_instant_crosses_boundaries_as_a_clock_does(before, next_one):
    behind = datetime(1970, 1, 1, tzinfo=UTC)
    assert instant_time(behind, after=before) == next_one


@pytest.mark.parametrize("year", [1, 969, 1969])
def test_a_clock_before_the_floor_gives_instants_past_it(year):
    assert instant_time(datetime(year, 6, 1, tzinfo=UTC)) == "19700101000000001"


def test_another_time_zone_is_turned_into_utc():
    there = timezone(timedelta(hours=5, minutes=30))
    assert instant_time(datetime(2024, 1, 1, 3, 0, tzinfo=there)) == "20231231213000000"


def test_past_the_last_instant_there_is_none():
    with pytest.raises(CorruptObject, match="99991231235959999"):
        instant_time(datetime(2024, 1, 1, tzinfo=UTC), after=instant_time(LAST))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024010100000000",
        "202401010000000000",
        "20240101000061000",
        "20240101000060000",
        "20240101006000000",
        "20240101240000000",
        "20230229000000000",
        "20241301000000000",
        "00000101000000000",
        "2024010100000000x",
        "2024-01-01 00:00:0",
        "+2024010100000000",
        " 2024010100000000",
        "\N{FULLWIDTH DIGIT TWO}0240101000000000",
        "20240101000000000\n",
    ],
    ids=ascii,
)
def test_what_is_no_real_clock_time_is_a_corrupt_object(text):
    with pytest.raises(CorruptObject, match="17 digits"):
        parse_instant(text)


@given(st.text(max_size=20) | st.integers(0, 10**17 - 1).map("{:017}".format))
def test_any_text_is_a_moment_that_gives_it_back_or_a_corrupt_object(text):
    try:
        moment = parse_instant(text)
    except CorruptObject:
        return
    assert max(text, "19700101000000001") == instant_time(moment)
