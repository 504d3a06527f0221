"""Every error, sorted by what to do next.

TallymarkError
├── TryAgain                retry: nothing was promised, and asking again is safe
│   ├── FlushFailed             a marker's segment could not be made durable
│   ├── Overloaded              a limit is reached; retry_after_s says when to come back
│   ├── ServiceUnavailable      the driver's service did not answer in time
│   │   └── ServiceOverloaded       it did, and had no room in all that time
│   └── ConflictError           another write won; read the table again and write again
├── Stopped                 stop: this writer, task or engine is over
│   ├── Closed                  the engine was closed while the request waited
│   ├── Sealed                  the instant takes no more markers: it is being committed or rolled back
│   ├── RolledBack              another writer took this one for dead and rolled it back
│   └── JobFailed               the engine that ran the tasks gave up; the write was rolled back
├── InvalidRequest          correct your call (also ValueError)
│   ├── UnsupportedTable        the table is of a kind or version that this library does not write
│   ├── NotAuthenticated        wrong secret or another version on the other side of the wire
│   └── MissingExtra            an optional dependency is not installed (also ImportError)
├── CorruptObject           look at the data: bytes in storage that nobody here has written
├── CommitUnknown           find out: the commit may have happened; `instant` names it
└── BackendError            what storage answered (backends/errors.py)
"""

from tallymark.backends.errors import TallymarkError as TallymarkError


class TryAgain(TallymarkError):
    """Nothing was promised; the same call may be made again."""


class FlushFailed(TryAgain):
    """The markers of a batch could not be made durable. None of them was acked."""


class Overloaded(TryAgain):
    """A limit is reached. The request was not taken."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ServiceUnavailable(TryAgain):
    """The service could not be reached, or did not answer within the bound."""


class ServiceOverloaded(ServiceUnavailable):
    """The service was reached, and answered for all of the bound that it has no room: storage does not keep up."""


class ConflictError(TryAgain):
    """Another write committed first and excludes this one, which left nothing."""

    def __init__(self, message: str, *, partition: str | None, winner: str) -> None:
        """``partition`` is the first partition path in conflict (None: the whole table), ``winner`` an instant."""
        super().__init__(message)
        self.partition = partition
        self.winner = winner


class Stopped(TallymarkError):
    """This writer, task or engine is over; asking again does not help."""


class Closed(Stopped):
    """The engine was closed before the request was answered. Its markers may or may not be durable."""


class Sealed(Stopped):
    """The instant takes no more markers."""


class RolledBack(Stopped):
    """The instant was rolled back by another writer, who took this one for dead."""


class JobFailed(Stopped):
    """The tasks of a job failed for good; what they had written is rolled back."""

    def __init__(self, message: str, *, details: str = "") -> None:
        """``details`` is all that the engine that ran the tasks had to say."""
        super().__init__(message)
        self.details = details


class InvalidRequest(TallymarkError, ValueError):
    """The call is wrong; the message names the input, the rule and the remedy. Nothing was changed."""


class UnsupportedTable(InvalidRequest):
    """What lies at the URL is not a table that this library writes."""


class NotAuthenticated(InvalidRequest):
    """The other side of the wire does not know the secret, or speaks another version."""


class MissingExtra(InvalidRequest, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class CorruptObject(TallymarkError):
    """An object in storage does not hold what its name says. It was not touched."""


class CommitUnknown(TallymarkError):
    """Storage stopped answering while the commit was being decided. ``tallymark timeline`` will tell."""

    def __init__(self, message: str, *, instant: str) -> None:
        super().__init__(message)
        self.instant = instant
