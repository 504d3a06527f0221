"""Batches of a stream: the rows of many appends that are committed together."""

from dataclasses import dataclass, field

import anyio
import pyarrow as pa

from tallymark.engine.errors import TallymarkError


@dataclass(slots=True, eq=False)
class Append:
    """The rows of one call, until it returns."""

    rows: pa.RecordBatch
    size: int
    """Their Arrow bytes."""
    producer: str | None = None
    sequence: int = 0
    batch: "StreamBatch | None" = None
    error: TallymarkError | None = None
    """Why this one alone has failed."""

    async def committed(self) -> int:
        """Return the position of its commit. Raises why there is none."""
        assert self.batch is not None, "it was added to one"
        await self.batch.settled.wait()
        if self.error is not None:
            raise self.error
        return self.batch.position()


@dataclass(slots=True, eq=False)
class StreamBatch:
    """Grows until its flush starts; then it is committed whole, but for appends that have failed by themselves."""

    appends: list[Append] = field(default_factory=list)
    size: int = 0
    settled: anyio.Event = field(default_factory=anyio.Event)
    outcome: int | TallymarkError | None = None

    def add(self, append: Append) -> None:
        append.batch = self
        self.appends.append(append)
        self.size += append.size

    def settle(self, outcome: int | TallymarkError) -> None:
        """End all waits."""
        assert self.outcome is None, "it has one outcome"
        self.outcome = outcome
        self.settled.set()

    def position(self) -> int:
        """Return where it was committed. Raises why it was not."""
        if isinstance(self.outcome, int):
            return self.outcome
        assert self.outcome is not None, "it is settled"
        raise self.outcome.with_traceback(None)

    @property
    def rows(self) -> pa.Table:
        """In one piece: a task has a cost for each batch."""
        return pa.Table.from_batches([each.rows for each in self.appends if each.error is None]).combine_chunks()

    @property
    def producers(self) -> dict[str, tuple[int, int]]:
        """By producer, the sequence numbers of its first and its last append, which are in order."""
        found: dict[str, tuple[int, int]] = {}
        for append in self.appends:
            if append.producer is not None and append.error is None:
                first, _ = found.get(append.producer, (append.sequence, 0))
                found[append.producer] = (first, append.sequence)
        return found
