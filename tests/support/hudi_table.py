"""A table assembled by hand from projections, and read by hudi-rs, which nobody here wrote."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hudi import HudiReadOptions, HudiTableBuilder

from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.projection import ProjectedFile, floor_files, projected_files
from tallymark.engine.timeline.properties import PROPERTIES, TableProperties
from tallymark.engine.timeline.scope import Scope


class HandMadeTable:
    """Data files and timeline files as one writer would leave them, without the writer."""

    def __init__(self, base: Path, schema: pa.Schema, *partition_by: str) -> None:
        self.base = base
        self.properties = TableProperties(
            name="hand_made", partition_by=partition_by, schema=schema, created="20261101000000000"
        )
        self._known: set[str] = set()
        self.put((ProjectedFile(PROPERTIES, self.properties.encode()), *floor_files(self.properties)))

    def put(self, files: Sequence[ProjectedFile]) -> None:
        for file in files:
            path = self.base / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as sink:
                sink.write(file.data)

    def data_file(self, instant: str, partition: str, rows: Sequence[dict[str, object]] | pa.Table) -> DataFile:
        """A file on disk that nothing else knows of."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=self.properties.schema)
        file = DataFile(partition, f"{uuid.uuid4()}-0_0-0-0_{instant}.parquet", table.num_rows, 0)
        path = self.base / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        return DataFile(partition, file.name, table.num_rows, path.stat().st_size)

    def append(self, instant: str, *added: DataFile) -> LogEntry:
        entry = LogEntry(kind="commit", instant=instant, nonce="n", base=0, operation="append", added=added)
        return self.project(entry)

    def overwrite(
        self, instant: str, scope: Scope, added: Sequence[DataFile] = (), removed: Sequence[DataFile] = ()
    ) -> LogEntry:
        entry = LogEntry(kind="commit", instant=instant, nonce="n", base=0, operation="overwrite", scope=scope)
        return self.project(replace(entry, added=tuple(added), removed=tuple(removed)))

    def project(self, entry: LogEntry) -> LogEntry:
        new = {file.partition for file in entry.added} - self._known
        self.put(projected_files(entry, self.properties, new_partitions=new))
        self._known |= new
        return entry

    def read(self, *filters: tuple[str, str, str]) -> pa.Table:
        """What hudi-rs sees, cast to the written schema, sorted by the first column."""
        table = HudiTableBuilder.from_base_uri(str(self.base)).build()
        batches = table.read(HudiReadOptions(filters=list(filters)))
        seen = pa.Table.from_batches(batches, schema=None if batches else self.properties.schema)
        assert seen.schema.names == self.properties.schema.names
        return seen.cast(self.properties.schema).sort_by(self.properties.schema.names[0])

    def rows(self, *filters: tuple[str, str, str]) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = self.read(*filters).to_pylist()
        return rows


def rows_by_hudi(base: Path) -> pa.Table:
    """What hudi-rs sees of any table."""
    return pa.Table.from_batches(HudiTableBuilder.from_base_uri(str(base)).build().read(HudiReadOptions()))
