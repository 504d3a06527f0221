"""Figures of jobs that use the service beside this one, which reports them twice a second."""

from collections.abc import Iterable, Mapping

from tallymark.engine.documents.jobs import LiveFields
from tallymark.engine.rpc.handshake import job_name, of_job_name


class LiveJobs:
    """The last report."""

    def __init__(self) -> None:
        self._jobs: dict[str, LiveFields] = {}

    def update(self, jobs: Mapping[str, LiveFields]) -> None:
        """Replace the figures by those of a report, by the names of jobs."""
        self._jobs = dict(jobs)

    def of(self, place: str, instant: str) -> LiveFields | None:
        """Return the figures of a job; None for one that does not use the service."""
        return self._jobs.get(job_name(instant, place))

    def places(self) -> Iterable[str]:
        """Return the places of the tables that jobs are writing."""
        return {of_job_name(job)[1] for job in self._jobs}
