"""How rows become bytes: Parquet 2.6, data pages 1.0, microseconds, dictionaries where values recur."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.engine.arrow.dictionary_columns import dictionary_columns
from tallymark.engine.settings import TaskSettings


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
