"""One side of a case: what it calls, and what has to be there before and gone afterwards."""

import itertools
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from tallymark.bench.caller import Arguments, Awaited, Caller
from tallymark.bench.case import Case

FILLING_CONCURRENCY = 32

PIECE_BYTES = 1_000_000
"""In which a data file's bytes come: about what a Parquet writer hands over for a column of a row group."""

DELETE_COUNT = 1000


@dataclass(frozen=True, slots=True)
class Hands:
    """How a side's objects are made and removed where no time is taken."""

    put: Awaited
    delete: Awaited


class VerbSide:
    """A side with a folder of its own. Every object it makes has a new name, as in a job."""

    def __init__(self, name: str, case: Case, caller: Caller, hands: Hands, folder: str) -> None:
        self._name = name
        self._case = case
        self._caller = caller
        self._hands = hands
        self._folder = folder
        self._numbers = itertools.count()
        self._data = secrets.token_bytes(min(case.data_bytes, PIECE_BYTES))  # no store can press them
        self._kept: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    async def sample(self, call_count: int) -> float:
        calls, left = await self._prepare(call_count)
        seconds = await self._caller.seconds(calls, self._case.concurrency)
        await self._delete(left)
        return seconds

    async def _prepare(self, call_count: int) -> tuple[list[Arguments], list[str]]:
        """The calls, and what they will leave."""
        if not self._kept:  # one at least, so that the folder stays when what a sample made is deleted
            self._kept = await self._put(self._case.object_count if self._case.verb == "list" else 1)
        match self._case.verb:
            case "get":
                return [(self._kept[0],)] * call_count, []
            case "list":
                return [(self._folder,)] * call_count, []
            case "delete":
                names = await self._put(call_count * self._case.object_count)
                return [(some,) for some in _slices(names, self._case.object_count)], []
            case "put" | "put_new":
                names = self._names(call_count)
                return [(name, self._data) for name in names], names
            case "data_file":
                names = self._names(call_count)
                pieces = [self._data] * (self._case.data_bytes // len(self._data))
                return [(name, pieces) for name in names], names

    def _names(self, count: int) -> list[str]:
        return [f"{self._folder}/{number:08}" for number in itertools.islice(self._numbers, count)]

    async def _put(self, count: int) -> list[str]:
        names = self._names(count)
        small = self._data[:1024]
        await self._hands.put.seconds([(name, small) for name in names], min(FILLING_CONCURRENCY, count))
        return names

    async def _delete(self, names: Sequence[str]) -> None:
        await self._hands.delete.seconds([(some,) for some in _slices(names, DELETE_COUNT)], 1)


def _slices(names: Sequence[str], count: int) -> list[list[str]]:
    return [list(names[first : first + count]) for first in range(0, len(names), count)]
