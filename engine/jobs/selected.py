"""Delete by predicate, as one job sees it: which files match whole, which cannot match, and which are looked up."""

from collections.abc import Iterable, Mapping
from typing import Any

from tallymark.engine.arrow.key_range import value_of
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.changes import JobChanges, Rewritten
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.partitions.path import partition_values
from tallymark.engine.sizing.profile import WorkloadProfile
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.upsert.keys import KeyReport
from tallymark.engine.upsert.locate import Lookup
from tallymark.engine.upsert.predicate import KeyRange


class SelectedChanges(JobChanges):
    def __init__(
        self,
        handle: TableHandle,
        properties: TableProperties,
        ticket: WriteTicket,
        target: WriteTarget,
    ) -> None:
        super().__init__(handle, properties, ticket)
        assert target.predicate is not None, "the job is of this kind"
        self._guard = target.guard
        self._predicate = target.predicate
        self._proven: tuple[DataFile, ...] = ()
        """Files whose partition or key range proves that all their rows match."""

    @property
    def removed(self) -> tuple[DataFile, ...]:
        hits = self._hits or {}
        return (*self._proven, *(self._files[path] for path in hits if hits[path] == self._files[path].rows))

    async def look_up(self, reports: Iterable[KeyReport] = ()) -> tuple[Lookup, ...]:
        if any(reports):
            raise InvalidRequest("reports of keys, and this job deletes by where; call look_up without any")
        at = await self._latest()
        proven: list[DataFile] = []
        unclear: list[DataFile] = []
        # Partitions that cannot match are not read, not even from the view.
        wanted = {path for path in await at.partitions() if self._predicate.proof(self._values(path), {}) != "none"}
        for file in await at.files_of(wanted):
            proof = self._predicate.proof(self._values(file.partition), self._ranges(file))
            if proof != "none":
                (proven if proof == "all" else unclear).append(file)
        self._check_allowed(proven)
        self._proven = tuple(proven)
        return tuple(Lookup(tuple(files)) for files in self._dealt(unclear))

    def _values(self, partition: str) -> Mapping[str, Any]:
        return partition_values(partition, self._properties.schema, self._properties.partition_by)

    def _ranges(self, file: DataFile) -> dict[str, KeyRange]:
        """Return the range of the key column that has one: it has no nulls."""
        ranged = self._ticket.range_field
        if ranged is None or not file.bounds:
            return {}
        bounds = file.bounds[0]
        lower, upper = (value_of(bound, ranged.type) if bound else None for bound in (bounds.lower, bounds.upper))
        return {ranged.name: (lower, upper)}

    def _check_allowed(self, files: Iterable[DataFile]) -> None:
        for file in files:
            if self._guard is not None:
                self._guard.check(file.partition)

    def _check_hits(self, hits: Mapping[str, int]) -> None:
        self._check_allowed(self._files[path] for path in hits)
        for path, rows in hits.items():
            if rows > self._files[path].rows:
                raise InvalidRequest(f"{rows:,} hits in {path}, which has fewer rows; pass those of hit_counts")

    def _profile(self, hits: Mapping[str, int]) -> WorkloadProfile:
        return WorkloadProfile(incoming=(), updates=self._updates(self._partial(hits)))

    def _partial(self, hits: Mapping[str, int]) -> dict[str, int]:
        """Return the hits in files that keep some of their rows."""
        return {path: rows for path, rows in hits.items() if rows < self._files[path].rows}

    def _check_rewritten(self, found: Rewritten) -> int:
        if lost := next((path for path in found.planned if path not in found.paths and self._replacing(path)), None):
            raise self._replaced(lost)
        partial = self._partial(self._hits or {})
        wanted = sum(partial.values())
        if sorted(found.paths) != sorted(partial) or not found.counts.rows == found.counts.deleted == wanted:
            raise InvalidRequest(
                f"the tasks deleted {found.counts.deleted:,} rows of {len(found.paths):,} files, and the lookups found "
                f"{wanted:,} in {len(partial):,}: hits or plans were mixed up, or not all planned; run the job again"
            )
        return 0

    def _incomplete(self) -> InvalidRequest:
        return InvalidRequest(
            "a delete by where needs its rows first: call WriteJob.look_up, and pass what its lookups have found to "
            "WriteJob.profile"
        )
