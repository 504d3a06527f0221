"""Estimate of the encoded size of incoming rows, from the sizes of the table's rows.

Where the plain size of the rows was measured, and files or a sample show the encoded bytes per plain byte, that ratio
is used: rows that have become longer are noticed before they are written. Otherwise the bytes per row are used, and
where nothing is known, a guess.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Self

from tallymark.engine.sizing.evidence import FOOTER_BYTES, SIGNIFICANT_BYTES, Observation
from tallymark.engine.sizing.profile import FileUpdates, IncomingRows, Sample
from tallymark.engine.sizing.rates import Rates
from tallymark.engine.timeline.entry import DataFile

GUESSED_RATIO = 0.4
"""Encoded bytes per plain byte. Five tables had 0.14 to 0.54; too high a guess leaves small files, too low a guess
files that are finished at their maximum anyway.
"""

GUESSED_ROW_BYTES = 64
"""Encoded bytes of a row of which nothing is known; low for the same reason."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of one write."""

    by_plain: Rates | None
    by_rows: Rates | None

    @classmethod
    def of(
        cls,
        incoming: Sequence[IncomingRows],
        stored: Mapping[str, Sequence[DataFile]],
        sample: Sample | None,
        updates: Sequence[FileUpdates] = (),
    ) -> Self:
        """Return the estimate; ``stored`` are the table's files by partition."""
        by_plain = by_rows = None
        measured = [rows.partition for rows in incoming if rows.plain_bytes]
        measured += [updated.file.partition for updated in updates if updated.plain_bytes]
        if measured:
            by_plain = Rates.of(measured, stored, attrgetter("plain_bytes"), _observed(sample, "plain_bytes"))
        counted = [rows.partition for rows in incoming if not (by_plain and rows.plain_bytes)]
        if counted:
            by_rows = Rates.of(counted, stored, attrgetter("rows"), _observed(sample, "rows"))
        return cls(by_plain, by_rows)

    def bytes_of(self, rows: IncomingRows) -> int:
        """Return the bytes without a footer; at least 1 where there are rows."""
        if not rows.rows:
            return 0
        if rows.plain_bytes and self.by_plain is not None:
            return max(1, round(rows.plain_bytes * self.by_plain.rate(rows.partition)))
        if self.by_rows is not None:
            return max(1, round(rows.rows * self.by_rows.rate(rows.partition)))
        if rows.plain_bytes:
            return max(1, round(rows.plain_bytes * GUESSED_RATIO))
        return max(1, rows.rows * GUESSED_ROW_BYTES)

    def bytes_with(self, updates: FileUpdates) -> int:
        """Return the size of their file, footer included: as it is, except that updated rows are longer or shorter.

        The replaced rows are assumed to be as long as the file's average row.
        """
        file = updates.file
        if not (updates.plain_bytes and file.plain_bytes and file.rows and self.by_plain):
            return file.bytes
        replaced = file.plain_bytes * min(updates.rows, file.rows) / file.rows
        grown = round((updates.plain_bytes - replaced) * self.by_plain.rate(file.partition))
        return max(file.bytes + grown, min(file.bytes, FOOTER_BYTES))


def _observed(sample: Sample | None, measure: str) -> Observation | None:
    measured = 0 if sample is None else getattr(sample, measure)
    if sample is None or not measured or not sample.encoded_bytes:
        return None
    weight = min(1.0, sample.encoded_bytes / SIGNIFICANT_BYTES)
    return Observation("now", weight, sample.encoded_bytes / measured)
