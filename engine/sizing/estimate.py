"""What incoming rows will come to in Parquet files, by what the rows of the table have come to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from tallymark.engine.sizing.profile import IncomingRows, Sample
from tallymark.engine.timeline.entry import DataFile

GUESSED_ROW_BYTES = 64
"""Of a row of which nothing at all is known."""

GUESSED_RATIO = 0.5
"""Encoded bytes for each plain one where no file and no sample tells."""


@dataclass(frozen=True, slots=True)
class Estimates:
    ratio: float
    row_bytes: float

    @classmethod
    def of(
        cls, incoming: Iterable[IncomingRows], held: Mapping[str, Sequence[DataFile]], sample: Sample | None
    ) -> Self:
        measured = [file for files in held.values() for file in files if file.plain_bytes and file.bytes]
        counted = [file for files in held.values() for file in files if file.rows and file.bytes]
        ratio, row_bytes = GUESSED_RATIO, float(GUESSED_ROW_BYTES)
        if sample is not None and sample.plain_bytes and sample.rows and sample.encoded_bytes:
            ratio, row_bytes = sample.encoded_bytes / sample.plain_bytes, sample.encoded_bytes / sample.rows
        if measured:
            ratio = sum(file.bytes for file in measured) / sum(file.plain_bytes for file in measured)
        if counted:
            row_bytes = sum(file.bytes for file in counted) / sum(file.rows for file in counted)
        return cls(ratio, row_bytes)

    def bytes_of(self, rows: IncomingRows) -> int:
        """At least one a row."""
        if rows.plain_bytes:
            return max(rows.rows, round(rows.plain_bytes * self.ratio))
        return max(rows.rows, round(rows.rows * self.row_bytes))
