"""Processes that read a log, and leave checkpoints of it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from tallymark.backends.contract import Backend
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.entry import LogEntry, encode_entry
from tallymark.engine.timeline.log import LOG_FOLDER, CommitLog
from tallymark.engine.views import part_plan
from tallymark.engine.views.checkpoint_format import CHECKPOINT_FOLDER
from tallymark.engine.views.checkpoint_reader import Checkpoints
from tallymark.engine.views.checkpoint_writer import Checkpointed, write_checkpoint
from tallymark.engine.views.view import View
from tests.engine.timeline.entries import history_of
from tests.engine.timeline.test_history import told
from tests.engine.views.histories import PARTITIONS

TABLE = "20261121000000000"


class Process:
    """One reader of a log, and its view."""

    def __init__(self, storage: Backend, *, keep_positions: int | None = None) -> None:
        self.storage = storage
        self.keep_positions = keep_positions
        self.checkpoints = Checkpoints(storage)
        self.log = CommitLog(storage, CommitSettings(), start=self.checkpoints)
        self.log.identify("")
        self.view: View | None = None

    async def sync(self) -> View:
        history = await self.log.refresh()
        if self.view is None:
            self.view = View(base=self.checkpoints.base, keep_positions=self.keep_positions)
        self.view.sync(history)
        return self.view

    async def checkpoint(self) -> Checkpointed | None:
        view = await self.sync()
        return await write_checkpoint(self.storage, self.checkpoints, self.log.history, view, table=TABLE)


async def put_entries(storage: Backend, entries: Iterable[LogEntry], *, after: int = 0) -> None:
    """Into the log, whatever they say."""
    for number, entry in enumerate(entries, after + 1):
        await storage.put_new(f"{LOG_FOLDER}/{number:020d}", encode_entry(entry))


async def answers_as_the_log_does(
    storage: Backend, entries: Iterable[LogEntry], process: Process | None = None
) -> None:
    """Of a history and a view that begin at a checkpoint, at each position that they answer for."""
    whole = history_of(entries)
    process = Process(storage) if process is None else process
    view = await process.sync()
    history = process.log.history
    assert told(history, since=history.base) == told(whole, since=history.base)
    for position in range(view.floor, whole.head + 1):
        at, truth = view.at(position), whole.files_at(position)
        assert tuple([file async for file in at.all_files()]) == truth
        assert await at.partitions() == tuple(sorted({file.partition for file in truth}))
        for partition in PARTITIONS:
            assert await at.files(partition) == tuple(file for file in truth if file.partition == partition)


@contextmanager
def parts_of(size: int) -> Iterator[None]:
    """Parts of so many bytes of rows: of a file or two, some partitions have to share one and others have their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_plan, "PART_BYTES", size)
        yield


def stored(storage: MemoryBackend) -> dict[str, bytes]:
    """What lies in the folder of checkpoints, read around the library."""
    return {path: data for path, (data, _) in storage._objects.items() if path.startswith(CHECKPOINT_FOLDER)}
