"""The jobs that this process looks up blocks of: what outlives a task, and what their tasks share."""

import os
import random
import threading
import time
from functools import partial

from tallymark.backends.contract import Backend
from tallymark.engine.lookups.cache import BlockCache
from tallymark.engine.lookups.rate_limit import ReadingPace
from tallymark.engine.lookups.source import JobBlocks
from tallymark.engine.tasks.shared_backend import shared_backend
from tallymark.engine.tasks.ticket import WriteTicket


class ProcessBlocks:
    """There is one: ``PROCESS_BLOCKS``. Any thread may use it. In a forked child everything begins anew."""

    def __init__(self) -> None:
        self.start_over()

    def start_over(self) -> None:
        """In a forked child another thread of the parent may have held any lock, and its threads are not there."""
        self._lock = threading.Lock()
        self._cache = BlockCache()
        self._pace = ReadingPace(monotonic=time.monotonic, random=random.SystemRandom().random)
        self._jobs: dict[tuple[str, str, int, str], JobBlocks] = {}
        self._users: dict[JobBlocks, int] = {}

    def enter(self, ticket: WriteTicket, backend: Backend | None) -> JobBlocks:
        """The ticket's job, with one user more. Where it is a new one here, those without users are given up."""
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
