"""What incoming rows will take in Parquet files, by what the rows of the table have come to.

Where the rows were measured, and files or a sample tell what a plain byte comes to, that is what counts: rows that have
become longer are seen before they are written. Else it is the bytes of a row, and where nothing is known, a guess.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Self

from tallymark.engine.sizing.evidence import TELLING_BYTES, Observation
from tallymark.engine.sizing.profile import IncomingRows, Sample
from tallymark.engine.sizing.rates import Rates
from tallymark.engine.timeline.entry import DataFile

GUESSED_RATIO = 0.4
"""Encoded bytes for each plain one. Five tables came to 0.14 to 0.54; a guess too high leaves small files, one too low
files that are finished at their maximum all the same."""

GUESSED_ROW_BYTES = 64
"""Of a row of which nothing is known; as low, for the same reason."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Of one write."""

    by_plain: Rates | None
    by_rows: Rates | None

    @classmethod
    def of(
        cls, incoming: Sequence[IncomingRows], held: Mapping[str, Sequence[DataFile]], sample: Sample | None
    ) -> Self:
        """``held`` are the table's files by partition."""
        by_plain = by_rows = None
        measured = [rows.partition for rows in incoming if rows.plain_bytes]
        if measured:
            by_plain = Rates.of(measured, held, attrgetter("plain_bytes"), _observed(sample, "plain_bytes"))
        counted = [rows.partition for rows in incoming if not (by_plain and rows.plain_bytes)]
        if counted:
            by_rows = Rates.of(counted, held, attrgetter("rows"), _observed(sample, "rows"))
        return cls(by_plain, by_rows)

    def bytes_of(self, rows: IncomingRows) -> int:
        """Without a footer; at least 1."""
        if rows.plain_bytes and self.by_plain is not None:
            return max(1, round(rows.plain_bytes * self.by_plain.rate(rows.partition)))
        if self.by_rows is not None:
            return max(1, round(rows.rows * self.by_rows.rate(rows.partition)))
        if rows.plain_bytes:
            return max(1, round(rows.plain_bytes * GUESSED_RATIO))
        return max(1, rows.rows * GUESSED_ROW_BYTES)


def _observed(sample: Sample | None, measure: str) -> Observation | None:
    measured = 0 if sample is None else getattr(sample, measure)
    if sample is None or not measured or not sample.encoded_bytes:
        return None
    weight = min(1.0, sample.encoded_bytes / TELLING_BYTES)
    return Observation("now", weight, sample.encoded_bytes / measured)
