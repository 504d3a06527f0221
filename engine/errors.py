"""Error classes of the engine, sorted by what the caller should do next.

TallymarkError
├── TryAgain                retry: nothing was promised; after ConflictError only with rows computed again
│   ├── FlushFailed             a marker's segment could not be made durable
│   ├── Overloaded              a limit is reached; retry_after_s is the time to wait before a retry
│   ├── ServiceUnavailable      the driver's service did not respond in time
│   │   └── ServiceOverloaded       it responded, but was overloaded for the whole time
│   └── ConflictError           another write won; read the table again and write again
├── Stopped                 stop: this writer, task or engine has ended
│   ├── Closed                  the engine was closed while the request waited
│   ├── Sealed                  the instant does not accept more markers: it is being committed or rolled back
│   ├── RolledBack              another writer treated this one as dead and rolled it back
│   │   └── TableReplaced           the table was removed, created again or restored while this writer wrote it
│   └── JobFailed               the engine that ran the tasks gave up; the write was rolled back
├── InvalidRequest          correct your call (also ValueError)
│   ├── UnsupportedTable        the table is of a kind or version that this library does not write
│   ├── NotAuthenticated        the peer has a wrong secret or another version
│   └── MissingExtra            an optional dependency is not installed (also ImportError)
├── CorruptObject           inspect the data: bytes in storage that no Tallymark writer wrote
│   └── LostEntries             the newest log entries are missing; restore them, or accept the loss
├── CommitUnknown           find out: the commit may have happened; `instant` names it
└── BackendError            the error that storage returned (backends/errors.py)
"""

from tallymark.backends.errors import TallymarkError as TallymarkError


class TryAgain(TallymarkError):
    """Base of errors after which the request can be retried; nothing was promised. For ConflictError, see there."""


class FlushFailed(TryAgain):
    """The markers of a batch could not be made durable. None of them was acked."""


class Overloaded(TryAgain):
    """A limit is reached. The request was not accepted."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ServiceUnavailable(TryAgain):
    """The service could not be reached, or did not respond within the time limit."""


class ServiceOverloaded(ServiceUnavailable):
    """The service was reached but stayed overloaded for the whole time limit: storage does not keep up."""


class ConflictError(TryAgain):
    """Another write committed first and conflicts with this one, which left nothing.

    Do not repeat the call with the same rows: read the table again, compute the rows again and start a new job. A
    repeated overwrite would replace what the winner has written.
    """

    def __init__(self, message: str, *, partition: str | None, winner: str) -> None:
        """Set ``partition``, the first partition path in conflict (None: the whole table), and ``winner``, an
        instant.
        """
        super().__init__(message)
        self.partition = partition
        self.winner = winner


class Stopped(TallymarkError):
    """This writer, task or engine has ended; a retry does not help."""


class Closed(Stopped):
    """The engine was closed before the request was answered. Its markers may or may not be durable."""


class Sealed(Stopped):
    """The instant does not accept more markers."""


class RolledBack(Stopped):
    """The instant was rolled back by another writer that treated this one as dead."""


class TableReplaced(RolledBack):
    """The table was removed, created again or restored from a copy while this writer wrote it."""


class JobFailed(Stopped):
    """The tasks of a job failed permanently; what they had written is rolled back."""

    def __init__(self, message: str, *, details: str = "") -> None:
        """Set ``details``, the full error text of the engine that ran the tasks."""
        super().__init__(message)
        self.details = details


class InvalidRequest(TallymarkError, ValueError):
    """The call is invalid; the message names the input, the rule and the remedy. Nothing was changed."""


class UnsupportedTable(InvalidRequest):
    """The URL contains something other than a table that this library writes."""


class NotAuthenticated(InvalidRequest):
    """The peer does not have the secret, or uses another version."""


class MissingExtra(InvalidRequest, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class CorruptObject(TallymarkError):
    """An object in storage does not contain what its name specifies. It was not changed."""


class LostEntries(CorruptObject):
    """The newest entries of the commit log are missing, and another object shows that they existed."""

    def __init__(self, message: str, *, evidence: tuple[str, ...], head: int) -> None:
        """Set ``evidence``, what shows it, and ``head``, the position at which the log ends in storage."""
        super().__init__(message)
        self.evidence = evidence
        self.head = head


class CommitUnknown(TallymarkError):
    """Storage stopped responding while the commit was being decided. ``tallymark timeline`` shows the outcome."""

    def __init__(self, message: str, *, instant: str) -> None:
        super().__init__(message)
        self.instant = instant
