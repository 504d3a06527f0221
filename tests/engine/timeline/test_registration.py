"""What a log tells of the numbers under which writers begin."""

import pytest

from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.registration import UNNUMBERED, Registrations, registration_number, registration_path


def told(*entries: tuple[int, tuple[int, ...]]) -> Registrations:
    history = History()
    for place, (number, unfinished) in enumerate(entries):
        instant = f"202611210000000{place:02}"
        history.apply(
            LogEntry(
                kind="commit", instant=instant, nonce=instant, base=0, operation="append", registration=number,
                unfinished=unfinished,
            )
        )  # fmt: skip
    assert History(history.as_base()).registration == history.registration
    return history.registration


@pytest.mark.parametrize(
    ("entries", "known"),
    [
        ([], Registrations(0, (UNNUMBERED,))),
        ([(0, ())], Registrations(0, (UNNUMBERED,))),
        ([(1, ())], Registrations(1, ())),
        ([(1, (UNNUMBERED,))], Registrations(1, (UNNUMBERED,))),
        ([(1, ()), (2, (1,)), (3, ())], Registrations(3, ())),
        ([(3, (2,)), (2, ()), (1, ())], Registrations(3, (2,))),
        ([(3, (2,)), (0, ())], Registrations(3, (UNNUMBERED, 2))),
        ([(3, (2,)), (0, ()), (4, ())], Registrations(4, ())),
    ],
)
def test_the_greatest_number_counts_and_what_was_unfinished_then(entries, known):
    assert told(*entries) == known


def test_an_entry_without_a_number_makes_its_like_doubtful_and_no_number():
    assert told((3, (2,)), (0, ())).doubtful == (2, 3)
    assert told((0, ())).doubtful == ()


def test_a_number_is_told_by_its_path():
    assert [registration_number(registration_path(number)) for number in (1, 12, 10**19)] == [1, 12, 10**19]
