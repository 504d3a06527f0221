"""Storage of a job, opened by a task in another process."""

from tallymark.backends import Backend, open_backend
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.tasks.ticket import WriteTicket


def shared_backend(ticket: WriteTicket, call: str) -> Backend:
    """Return the ticket's storage; no I/O. Raises InvalidRequest for storage that processes do not share, naming the
    call that needs a ``backend``.
    """
    if ticket.url.startswith("memory:"):
        raise InvalidRequest(
            f"the job's storage, {ticket.url!r}, lives in the memory of the process that opened it: give {call} "
            "that very backend there, or write to storage that processes share"
        )
    return open_backend(ticket.url, options=ticket.options)
