"""Which rows a run's writers write: each tells whose it is."""

from tests.simulation.plan import YEARS

ROWS = 2
"""In each batch."""

ASTRAY = 99
"""The place of the row that only one attempt reads."""

_OTHERS = {"founder": 90, "rescuer": 91}

Row = tuple[int, str]
"""Its flight, and the partition of its file."""


def first_flight(writer: str, task: int, attempt: int, place: int) -> int:
    """The first flight of a batch: no other batch of the run has any of its rows."""
    number = _OTHERS[writer] if writer in _OTHERS else int(writer.removeprefix("writer"))
    return ((number * 10 + task) * 10 + attempt) * 1000 + place * 10


def partition_of(month: int, *, by_year: bool) -> str:
    return f"year={YEARS[month]}/month={month}" if by_year else f"month={month}"
