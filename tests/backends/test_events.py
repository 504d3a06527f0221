"""The form of a log line."""

import json
import logging
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallymark.backends.events import EventLog, event_line

LOGGER = "tests.events"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("20261121093000000", "20261121093000000"),
        ("month=1", '"month=1"'),
        ("a b", '"a b"'),
        ('say "no"', '"say \\"no\\""'),
        ("two\nlines", '"two\\nlines"'),
        ("", '""'),
        ("s3://lake/größe", "s3://lake/größe"),
        ("größer als", '"größer als"'),
        (7, "7"),
        (0.0125, "0.0125"),
        (1.23456789, "1.23457"),
        (True, "true"),
        (ValueError("bad luck"), '"ValueError: bad luck"'),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_value_is_quoted_where_a_line_could_not_be_split_otherwise(value, shown):
    assert event_line("noun.verb", {"key": value}) == f"noun.verb key={shown}"


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(), max_size=4))
@example({"path": "a=b \t\u2028\x85\x1c"})
def test_every_line_splits_into_what_was_told(fields):
    line = event_line("noun.verb", fields)
    assert line.splitlines() == [line]
    found = re.findall(r' ([a-z_]+)=("(?:[^"\\]|\\.)*"|[^ "]+)', line.removeprefix("noun.verb"))
    assert {key: json.loads(value) if value.startswith('"') else value for key, value in found} == fields


def test_a_key_without_a_value_is_left_out_and_the_record_carries_the_rest(caplog):
    with caplog.at_level(logging.INFO, LOGGER):
        EventLog(LOGGER).info("noun.verb", here=1, absent=None)
    (record,) = caplog.records
    assert (record.message, record.event, record.fields) == ("noun.verb here=1", "noun.verb", {"here": 1})
    assert record.funcName == "test_a_key_without_a_value_is_left_out_and_the_record_carries_the_rest"


def test_a_percent_sign_is_only_a_percent_sign(caplog):
    EventLog(LOGGER).warning("noun.verb", path="50%s")
    assert caplog.messages == ["noun.verb path=50%s"]


def test_nothing_is_formatted_where_nobody_listens():
    class Untold:
        def __str__(self) -> str:
            raise LookupError("formatted")

    EventLog(LOGGER).debug("noun.verb", value=Untold())


def test_a_fault_brings_its_stack(caplog):
    try:
        raise LookupError("why")
    except LookupError:
        EventLog(LOGGER).fault("noun.verb")
    assert caplog.records[0].levelno == logging.ERROR
    assert "LookupError: why" in caplog.text
