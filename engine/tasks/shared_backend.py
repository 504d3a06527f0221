"""Storage of a job, opened by a task in another process."""

import os
from functools import lru_cache

from tallymark.backends import Backend, StorageOptions, open_backend
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.tasks.ticket import WriteTicket

BACKEND_COUNT = 16
"""Backends that a process keeps for later tasks of the same tables: an object store takes 4 ms to open, and a new
connection two or three round trips.
"""


def shared_backend(ticket: WriteTicket, call: str) -> Backend:
    """Return the ticket's storage, that of earlier tasks of this process where there is one; no I/O. Raises
    InvalidRequest for storage that processes do not share, naming the call that needs a ``backend``.
    """
    if ticket.url.startswith("memory:"):
        raise InvalidRequest(
            f"the job's storage, {ticket.url!r}, lives in the memory of the process that opened it: give {call} "
            "that very backend there, or write to storage that processes share"
        )
    return _opened(os.getpid(), ticket.url, ticket.options)


@lru_cache(BACKEND_COUNT)
def _opened(process: int, url: str, options: StorageOptions) -> Backend:
    """Return the storage, opened in this process: a fork has no threads of the other one."""
    return open_backend(url, options=options)
