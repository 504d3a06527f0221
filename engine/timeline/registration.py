"""Registration numbers of writers: ``.hoodie/.tallymark/begun/<k>``, k = 1, 2, ..., by which open writers are found.

Owns: what the log records of the numbers. ``instants.registration`` takes and reads them, and has the argument;
``docs/decisions/0017-registration-numbers.md`` explains it at length.
"""

from dataclasses import dataclass

REGISTRATION_FOLDER = ".hoodie/.tallymark/begun"

UNNUMBERED = 0
"""Stands for all writers of releases without numbers, which are found by listing the open instants."""


@dataclass(frozen=True, slots=True)
class Registrations:
    """State of the numbers by a log, as far as it was read; initially empty."""

    number: int = 0
    """The greatest number of any entry: a smaller number without an object is over, or no writer will ever
    continue it.
    """
    unfinished: tuple[int, ...] = (UNNUMBERED,)
    """Of the smaller numbers, those that were not over when the writer of ``number`` started."""

    def after(self, number: int, unfinished: tuple[int, ...]) -> "Registrations":
        """Return the state after an entry that records these; 0 for an entry without a number."""
        if number > self.number:
            return Registrations(number, unfinished)
        if number == UNNUMBERED and UNNUMBERED not in self.unfinished:
            return Registrations(self.number, (UNNUMBERED, *self.unfinished))
        return self

    @property
    def doubtful(self) -> tuple[int, ...]:
        """Numbers up to the greatest that may still be open."""
        numbers = [*self.unfinished, self.number]
        return tuple(number for number in numbers if number != UNNUMBERED)


def registration_path(number: int) -> str:
    return f"{REGISTRATION_FOLDER}/{number:020d}"


def registration_number(path: str) -> int:
    """Return the number of a path that ``registration_path`` returned."""
    return int(path.rpartition("/")[2])
