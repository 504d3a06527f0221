"""Who takes part in a case on a place, and what a side does in a round."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import SubprocessError

from tallymark.bench.peers.writers import writer
from tallymark.bench.writes.case import WriteCase
from tallymark.bench.writes.hands import Hands, SideFailed
from tallymark.bench.writes.order import Done
from tallymark.bench.writes.place import WritePlace
from tallymark.bench.writes.session import Unfit, hands_for


@dataclass(slots=True)
class Crew:
    """The workers of one place, which stay for all its cases, and who could not come."""

    place: WritePlace
    hands: dict[str, Hands] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    def lost(self, name: str, attempt: Callable[[], object]) -> str | None:
        """Why the side cannot do it; from then on it is absent. None: it did."""
        try:
            attempt()
        except SideFailed as error:
            self.absent[name] = str(error)
            return str(error)
        return None

    def title(self, name: str) -> str:
        """With its Spark's release, where that is another than ours has."""
        hands, ours = self.hands.get(name), self.hands.get("ours")
        is_other = hands is not None and ours is not None and hands.spark != ours.spark
        return f"{writer(name).title} on Spark {hands.spark}" if hands and is_other else writer(name).title


@contextmanager
def crew(
    place: WritePlace, names: Sequence[str], *, cores: int, pythons: Mapping[str, str], own_python: str, logs: Path
) -> Iterator[Crew]:
    """Workers with a session each, all started at once."""
    found = Crew(place)
    with ExitStack() as ended:
        for name in names:
            python = pythons.get(name, own_python)
            try:
                hands = hands_for(name, place, master=f"local[{cores}]", python=python, logs=logs)
            except (OSError, SubprocessError, Unfit) as error:
                found.absent[name] = _first_line(error)
                continue
            found.hands[name] = ended.enter_context(hands)
            found.lost(name, hands.begin)
        for hands in found.hands.values():
            found.lost(hands.name, hands.await_session)
        yield found


class Turn:
    """A side in one case: each write has its target, and what it does not need again is removed."""

    def __init__(self, hands: Hands, place: WritePlace, case: WriteCase, *, source: Path, codec: str) -> None:
        self.name = hands.name
        self._hands = hands
        self._place = place
        self._case = case
        self._source = source
        self._codec = codec
        self._folder = f"{place.url}/{case.name}-{hands.name}"
        self._writes = itertools.count()
        self._target = ""

    def try_once(self) -> None:
        """A write before the first round, of a side that may not be able to. Raises SideFailed."""
        self.write(0)

    def write(self, _number: int) -> Done:
        number = next(self._writes)
        if self._case.is_new and self._target:
            self._place.remove(self._target)
        self._target = f"{self._folder}/{number if self._case.is_new else 0}"
        order = self._case.order(source=self._source.as_uri(), target=self._target, codec=self._codec)
        if self._place.seen is None:
            return self._hands.write(order)
        self._place.seen()  # what came before is not the write's
        done = self._hands.write(order)
        return replace(done, figures={**self._place.seen(), **done.figures})

    def wrong(self) -> str | None:
        """Why its writes do not count: a side that writes nothing is fast. None: its readers see what was written."""
        count = next(self._writes)
        expected = self._case.data.rows * (count if self._case.mode == "append" and not self._case.is_new else 1)
        if not self._place.can_read:
            return None
        try:
            rows = self._hands.row_count(self._target)
        except SideFailed as error:
            return str(error)
        return None if rows == expected else f"it was to leave {expected:,} rows, and its readers see {rows:,}"

    def remove(self) -> None:
        self._place.remove(self._folder)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
