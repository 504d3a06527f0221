"""A table of sizes alone: plans are carried out by arithmetic, every incoming byte taking one byte of a file."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tallymark import SizingSettings
from tallymark.engine.sizing import IncomingRows, Sample, SizingPlan, WorkloadProfile
from tallymark.engine.sizing.evidence import FOOTER_BYTES
from tallymark.engine.sizing.planning import plan
from tallymark.engine.timeline.entry import DataFile

ROW_BYTES = 1000
EXACT = Sample(rows=10**9, plain_bytes=ROW_BYTES * 10**9, encoded_bytes=ROW_BYTES * 10**9)


@dataclass
class ModelTable:
    settings: SizingSettings
    files: dict[str, DataFile] = field(default_factory=dict)
    """Live, by path."""
    appends: int = 0
    inserted_bytes: int = 0
    rewritten_bytes: int = 0

    def append(self, incoming: Iterable[tuple[str, int]]) -> SizingPlan:
        """So many bytes, a multiple of ROW_BYTES, for each partition."""
        rows = tuple(IncomingRows(path, bytes_ // ROW_BYTES, bytes_) for path, bytes_ in incoming)
        made = plan(WorkloadProfile(incoming=rows, sample=EXACT), tuple(self.files.values()), self.settings)
        self.appends += 1
        self.inserted_bytes += sum(each.rows * ROW_BYTES for each in rows)
        self.rewritten_bytes += made.rewritten_bytes
        for number, planned in enumerate(made.files):
            file = _written(planned.partition, f"f{number}_0_{self.appends:017}.parquet", planned.rows, planned.fill)
            if planned.fill is not None:
                del self.files[planned.fill.path]
            self.files[file.path] = file
        return made


def _written(partition: str, name: str, rows: int, fill: DataFile | None) -> DataFile:
    inserted = rows * ROW_BYTES
    if fill is None:
        return DataFile(partition, name, rows, FOOTER_BYTES + inserted, inserted)
    return DataFile(
        partition,
        name,
        fill.rows + rows,
        fill.bytes + inserted,
        fill.plain_bytes + inserted,
        fill.rewritten_bytes + fill.bytes,
    )
