"""Parquet encoding: version 2.6, data pages 1.0, microseconds, dictionaries for columns whose values recur."""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tallymark.engine.arrow.leaves import leaves
from tallymark.engine.settings import TaskSettings

SAMPLE_ROWS = 4096
"""Maximum number of rows to sample, the first ones: half a millisecond for about five columns."""

SAMPLE_SHARE = 1 / 8
"""Maximum share of the rows to sample, so that the sample costs a fraction of what it saves."""

DICTIONARY_BYTES = 1 << 20
"""Maximum size of a column's dictionary, the encoder's (Arrow's default); beyond it, the encoder drops the
dictionary.
"""

LEAST_ROWS = 1024
"""With fewer rows the cost of a file is not in its values."""


def dictionary_columns(rows: pa.Table) -> list[str] | bool:
    """Return the Parquet paths of the columns to encode by a dictionary, as ``ParquetWriter(use_dictionary=...)`` takes
    them.

    ``rows`` are the first row group, which has its own dictionary. Nested columns always have one.
    """
    if rows.num_rows < LEAST_ROWS:
        return True
    sample = rows.slice(0, min(SAMPLE_ROWS, round(rows.num_rows * SAMPLE_SHARE)))
    return [
        path for field in rows.schema if _recurs(sample.column(field.name), rows.num_rows) for path, _ in leaves(field)
    ]


def _recurs(sample: "pa.ChunkedArray[Any]", rows: int) -> bool:
    """Return whether the values are few enough, judged by the number of distinct ones in the sample. Nulls are ignored.

    With D equally frequent values, n rows are expected to contain D (1 - exp(-n / D)) of them.
    """
    shown = len(sample) - sample.null_count
    if not shown or pa.types.is_nested(sample.type) or pa.types.is_dictionary(sample.type):
        return True
    values_max = min(rows * shown / len(sample) / 2, DICTIONARY_BYTES * shown / max(1, sample.nbytes))
    shown_max = values_max * -math.expm1(-shown / values_max)
    return bool(pc.count_distinct(sample).as_py() <= shown_max)


def parquet_writer(sink: Any, schema: pa.Schema, settings: TaskSettings, first: pa.Table) -> pq.ParquetWriter:
    """Return a writer for one file; the rows written ``first`` decide which columns get a dictionary."""
    return pq.ParquetWriter(
        sink,
        schema,
        version="2.6",
        data_page_version="1.0",
        coerce_timestamps="us",
        compression=settings.compression,
        use_dictionary=dictionary_columns(first),  # type: ignore[arg-type] # names, too
        write_statistics=True,
        store_schema=True,
    )
