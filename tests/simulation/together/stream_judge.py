"""Checks of streams: what was acknowledged is there once, whole, in the order of its producer, and nothing else is."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.history import Appended, Landed
from tests.simulation.executor import ROWS, first_flight, partition_of
from tests.simulation.keyed.rows import Row
from tests.simulation.together.driver import NAME
from tests.simulation.world import Outcome
from tests.table_invariants import LOG

Append = tuple[int, int]
"""A producer, and the number of an append."""


def appends_of(outcome: Outcome, entry: Mapping[str, Any], rows: Counter[Row]) -> list[Append]:
    """Return the appends whose rows a flush has added: all rows of each, once, and none else. The entry states the last
    one of each producer.
    """
    found = sorted({_append_of(flight) for flight, _ in rows})
    assert rows == sum((_rows_of(outcome, append) for append in found), Counter()), f"not whole appends: {rows}"
    last = {f"p{producer}": number for producer, number in found if _is_numbered(outcome, producer)}
    assert dict(entry.get("producers", ())) == last, f"{last} were written, and recorded were {entry['producers']}"
    return found


def check_appends(outcome: Outcome, committed: list[tuple[int, Append]]) -> None:
    """Raise AssertionError unless ``acknowledged_appends_are_committed``. ``committed`` are the appends in the order of
    the log, with their positions.
    """
    position_of: dict[Append, int] = {}
    last: dict[int, int] = {}
    for position, (producer, number) in committed:
        assert (producer, number) not in position_of, f"append {number} of producer {producer} is there twice"
        assert not _is_numbered(outcome, producer) or number > last.get(producer, -1), (
            f"append {number} of producer {producer} is after {last[producer]}"
        )
        position_of[producer, number], last[producer] = position, number
    landed = set()
    for event in outcome.history.events:
        if isinstance(event, Landed) and event.path.startswith(LOG):
            landed.add(event.path)
        elif isinstance(event, Appended):
            at = position_of.get((event.producer, event.sequence))
            assert at is not None, f"acknowledged, and not in the log: {event}"
            assert f"{LOG}{at:020d}" in landed, f"acknowledged before its entry was there: {event}"
            assert at <= event.position, f"it is at position {at}: {event}"


def _append_of(flight: int) -> Append:
    return flight // 10_000 % 10, flight % 1000 // 10


def _rows_of(outcome: Outcome, append: Append) -> Counter[Row]:
    producer, number = append
    [plan] = outcome.plan.streams
    partition = partition_of(plan.producers[producer].months[number], by_year=outcome.plan.by_year)
    first = first_flight(NAME, producer, 0, number)
    return Counter((first + row, partition) for row in range(ROWS))


def _is_numbered(outcome: Outcome, producer: int) -> bool:
    [plan] = outcome.plan.streams
    return plan.producers[producer].is_numbered
