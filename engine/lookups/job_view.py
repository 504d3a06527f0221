"""A table's files as of the position at which a job began, for the tasks of that job."""

import os
import random
import threading
import time
from collections.abc import Iterable
from functools import partial
from types import TracebackType
from typing import Self

from tallymark.backends.contract import Backend
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.lookups.cache import BlockCache
from tallymark.engine.lookups.local_log import ReadingPace
from tallymark.engine.lookups.source import JobBlocks, JobViewStatistics
from tallymark.engine.tasks.caller import check_may_block
from tallymark.engine.tasks.shared_backend import shared_backend
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.views.block import find_live
from tallymark.engine.views.view import live_files


class ProcessBlocks:
    """The lookups of this process, ``PROCESS_BLOCKS``. Thread-safe. A forked child starts with an empty one."""

    def __init__(self) -> None:
        self.start_over()

    def start_over(self) -> None:
        """Reset in a forked child: another thread of the parent may have held a lock, and its threads do not exist in
        the child.
        """
        self._lock = threading.Lock()
        self._cache = BlockCache()
        self._pace = ReadingPace(monotonic=time.monotonic, random=random.SystemRandom().random)
        self._jobs: dict[tuple[str, str, int, str], JobBlocks] = {}
        self._users: dict[JobBlocks, int] = {}

    def enter(self, ticket: WriteTicket, backend: Backend | None) -> JobBlocks:
        """Return the blocks of the ticket's job, with one user more. A new job evicts the jobs without users."""
        place = f"{ticket.url}#{id(backend)}" if ticket.url.startswith("memory:") else ticket.url
        key = (place, ticket.instant, ticket.base, ticket.base_hash)
        with self._lock:
            unused = [] if key in self._jobs else self._take_unused()
            if key not in self._jobs:
                storage = partial(shared_backend, ticket, "open_view") if backend is None else lambda: backend
                self._jobs[key] = JobBlocks(ticket, storage, self._cache, self._pace, place=place)
            job = self._jobs[key]
            self._users[job] = self._users.get(job, 0) + 1
        for each in unused:
            each.forget_log()
        return job

    def leave(self, job: JobBlocks) -> None:
        with self._lock:
            if job in self._users:  # else it was the parent's, before a fork
                self._users[job] -= 1

    def _take_unused(self) -> list[JobBlocks]:
        keys = [key for key, job in self._jobs.items() if not self._users[job]]
        unused = [self._jobs.pop(key) for key in keys]
        for job in unused:
            del self._users[job]
        return unused


PROCESS_BLOCKS = ProcessBlocks()
os.register_at_fork(after_in_child=PROCESS_BLOCKS.start_over)


def open_view(ticket: WriteTicket, *, backend: Backend | None = None) -> "JobView":
    """Return the table's files as of the position at which the ticket's job started.

    Blocking; for any process, and any thread but an event loop's. Queries go to the job's service. Where it has not
    answered within ``ViewSettings.wait_s``, or does not exist, the log is read in this process, once for all its tasks,
    with the same answers; queries go to the service again when it is back. ``backend`` is needed only where the
    ticket's URL and options are not sufficient.

    Raises:
        InvalidRequest: the ticket has no job, or the table's storage is one that processes do not share.
    """
    check_may_block("open_view")
    if not ticket.base_hash:
        raise InvalidRequest("this ticket belongs to no job and has no position; take WriteJob.ticket")
    return JobView(ticket, backend)


class JobView:
    """Made by ``open_view``, for a ``with`` block. All views of a job in one process share their cache.

    Each query is as of ``position``, whatever is committed since. Each of them raises:
        Stopped: the job is over.
        CorruptObject: the service is unusable, and the log cannot be read, or is a different one.
        ServiceUnavailable, BackendError: the service is unusable, and storage did not answer in time.
    """

    def __init__(self, ticket: WriteTicket, backend: Backend | None) -> None:
        self._position = ticket.base
        self._blocks = PROCESS_BLOCKS.enter(ticket, backend)
        self._process = os.getpid()
        self._is_open = True

    @property
    def position(self) -> int:
        """The position of the commit log that all answers refer to."""
        return self._position

    def files(self, partition: str) -> tuple[DataFile, ...]:
        """Return the live files of a partition, sorted by name; none for one that the table did not have."""
        return self.files_of([partition])[partition]

    def files_of(self, partitions: Iterable[str]) -> dict[str, tuple[DataFile, ...]]:
        """Return the files of many partitions, by partition: one request for all that are not cached."""
        blocks = self._blocks_of(partitions)
        return {partition: live_files(block, partition, self._position) for partition, block in blocks.items()}

    def file(self, partition: str, file_id: str) -> DataFile | None:
        """Return the live file of this id; None where there was none."""
        return find_live(self._blocks_of([partition])[partition], partition, file_id, self._position)

    def small_files(self, partition: str, *, below: int) -> tuple[DataFile, ...]:
        """Return the live files of fewer bytes, sorted by name."""
        return tuple(file for file in self.files(partition) if file.bytes < below)

    def statistics(self) -> JobViewStatistics:
        """Return a reading of all views of the job in this process."""
        return self._blocks.statistics()

    def close(self) -> None:
        """End the queries. The cache remains for other tasks of the job, until tasks of another job start."""
        if self._is_open:
            self._is_open = False
            PROCESS_BLOCKS.leave(self._blocks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _blocks_of(self, partitions: Iterable[str]) -> dict[str, bytes]:
        if not self._is_open:
            raise InvalidRequest("this view is closed; ask inside its with block, or open another")
        if os.getpid() != self._process:
            raise InvalidRequest(f"a view of process {self._process} is used in {os.getpid()}; call open_view there")
        check_may_block("a look-up")
        return self._blocks.blocks(_checked(partitions))


def _checked(partitions: Iterable[str]) -> list[str]:
    """Return the partitions as a list. Raises InvalidRequest for what is not one: an error of the call, not of the
    service.
    """
    if isinstance(partitions, str):
        raise InvalidRequest(f"partitions {partitions!r}: give a list of partition paths, not one text")
    found = list(partitions)
    for partition in found:
        try:
            partition.encode("utf-8")
        except (AttributeError, UnicodeEncodeError) as error:
            raise InvalidRequest(
                f"partition {partition!r} is not a partition path: give a text such as 'month=1', or '' for a table "
                "without partitions"
            ) from error
    return found
