"""Numbers under which writers begin: ``.hoodie/.tallymark/begun/<k>``, k = 1, 2, ... By them the open ones are got.

Owns: what the log records of the numbers. ``instants.registration`` takes and reads them, and has the argument;
``docs/decisions/0017-nothing-is-listed.md`` has it at length.
"""

from dataclasses import dataclass

REGISTRATION_FOLDER = ".hoodie/.tallymark/begun"

UNNUMBERED = 0
"""Stands for all writers of releases that took no numbers: they are found by listing what is open."""


@dataclass(frozen=True, slots=True)
class Registrations:
    """What is known of the numbers by a log, as far as it was read; nothing, to begin with."""

    number: int = 0
    """The greatest of any entry: a smaller one that is not there is over, or no writer will ever continue it."""
    unfinished: tuple[int, ...] = (UNNUMBERED,)
    """Of the smaller ones those that were not over when the writer of that number began."""

    def after(self, number: int, unfinished: tuple[int, ...]) -> "Registrations":
        """Return the state after an entry that records these; 0 for an entry without."""
        if number > self.number:
            return Registrations(number, unfinished)
        if number == UNNUMBERED and UNNUMBERED not in self.unfinished:
            return Registrations(self.number, (UNNUMBERED, *self.unfinished))
        return self

    @property
    def doubtful(self) -> tuple[int, ...]:
        """The numbers up to the greatest that may still be open."""
        numbers = [*self.unfinished, self.number]
        return tuple(number for number in numbers if number != UNNUMBERED)


def registration_path(number: int) -> str:
    return f"{REGISTRATION_FOLDER}/{number:020d}"


def registration_number(path: str) -> int:
    """Of what ``registration_path`` gave."""
    return int(path.rpartition("/")[2])
