"""How rows become bytes: Parquet 2.6, data pages 1.0, microseconds, dictionaries where values recur."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.engine.files.dictionary_columns import dictionary_columns
from tallymark.engine.files.ticket import WriteTicket


def parquet_writer(sink: Any, ticket: WriteTicket, first: pa.Table) -> pq.ParquetWriter:
    """For a file of the ticket's job; by the rows that are ``first`` written it is chosen how columns are encoded."""
    return pq.ParquetWriter(
        sink,
        ticket.schema,
        version="2.6",
        data_page_version="1.0",
        coerce_timestamps="us",
        compression=ticket.settings.compression,
        use_dictionary=dictionary_columns(first),  # type: ignore[arg-type] # names, too
        write_statistics=True,
        store_schema=True,
    )
