"""Documents of the open instants of a table: what their jobs have marked, and what their end would remove."""

from typing import TYPE_CHECKING, TypedDict

from tallymark.engine.documents.watch import WatchedFields, watched_fields

if TYPE_CHECKING:
    from tallymark.engine.inspection.watch import WatchedInstant


class LiveFields(TypedDict):
    """What the service itself has seen of a job that uses it, since it has served the first request of the job."""

    tasks: int
    """Open connections of the job's tasks; a process has one."""
    markers: int
    """Markers that this service has acked."""
    acks_s: float
    """Markers acked per second, over the last ten seconds."""
    p50_s: float | None
    """Median time from a marker request to its ack, in seconds, since the start; null before the first."""
    p99_s: float | None


class JobFields(WatchedFields):
    live: LiveFields | None
    """Null for a job that does not use this service."""


class JobsDocument(TypedDict):
    url: str
    at: str
    """Time by this machine's clock, ISO 8601, UTC."""
    jobs: list[JobFields]


def job_fields(found: "WatchedInstant", live: LiveFields | None) -> JobFields:
    return {**watched_fields(found), "live": live}


class LostPartitionFields(TypedDict):
    partition: str
    files: int


class LossDocument(TypedDict):
    """What a rollback of an open instant would remove if its writer died now."""

    url: str
    instant: str
    files: int
    """Files that are marked; some may not have been started."""
    partitions: list[LostPartitionFields]
    """The partitions of these files, those with the most first."""
