"""Sample of a DataFrame's rows, encoded in one task to measure their size."""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from tallymark.engine.sizing.profile import Sample
from tallymark.engine.tasks.sample import sample_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.spark_glue.bootstrap import begun
from tallymark.spark_glue.failure import own_errors
from tallymark.spark_glue.key_columns import KeyColumns
from tallymark.spark_glue.numbered import column_name, numbered
from tallymark.spark_glue.profile import Profile

FILE_RATIO = 4
"""Initial plain bytes per byte of a file. It only decides how far apart the rows of one file are; twice too much or too
little changes the sample of a sequence by about 4 %.
"""

PARTITIONS_MAX = 1000
"""Maximum number of partitions to sample: enough of small ones, and Spark gets a condition for each."""

_SEED = 6
"""Any value: the same rows are chosen each time."""

_SAMPLE = "rows long, plain_bytes long, encoded_bytes long"


def sampled(df: DataFrame, ticket: WriteTicket, profile: Profile) -> Sample | None:
    """Return the encoded size of as many rows as make one row group, chosen like those of one file; of all if there are
    fewer.

    A smaller sample has more bytes per row, since a row group has its own dictionaries: by 17 % for a quarter of it,
    where names recur. So have rows from everywhere, where those of a file are adjacent. So the sample is one file's
    share of the largest partition, or the largest partitions as they are. No row is sent to the driver; one task has
    them all.

    Raises:
        InvalidRequest: the rows do not fit the table's schema.
        JobFailed: Spark gave up.
    """
    some = chosen(df, ticket, profile)
    without_key = replace(ticket, service=None)
    with own_errors(df.sparkSession):
        found = some.repartition(1).mapInArrow(begun(functools.partial(encode, without_key)), _SAMPLE).collect()
    return Sample(*found[0]) if found else None


def chosen(df: DataFrame, ticket: WriteTicket, profile: Profile) -> DataFrame:
    """Return the rows to sample: about one file's, or some small partitions'."""
    partitions, size = _largest(profile, ticket.row_group_bytes)
    hash_ = KeyColumns(df, ticket.partition_by).hash()
    if hash_ is not None and len(partitions) < len(profile.incoming):
        hashes = [number for number, path in profile.paths.items() if path in partitions]
        columns = [column_name(place) for place in range(len(df.columns))]
        df = numbered(df).where(hash_.isin(hashes)).select(*columns).toDF(*df.columns)
    share = FILE_RATIO * ticket.max_file_bytes / size
    return df if share >= 1 else df.sample(withReplacement=False, fraction=share, seed=_SEED)


def encode(ticket: WriteTicket, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the task: Arrow batches in, a row with their sample out, if there is one."""
    sample = sample_task(ticket, batches)
    if sample is not None:
        sizes = {"rows": sample.rows, "plain_bytes": sample.plain_bytes, "encoded_bytes": sample.encoded_bytes}
        yield pa.RecordBatch.from_pylist([sizes])


def _largest(profile: Profile, enough: int) -> tuple[set[str], int]:
    """Return the fewest largest partitions that have that many bytes, or all of them; and the bytes of the first."""
    partitions: set[str] = set()
    by_size = sorted(profile.incoming, key=lambda rows: (-(rows.plain_bytes or 0), rows.partition))
    left = enough
    for rows in by_size[:PARTITIONS_MAX]:
        if left > 0:
            partitions.add(rows.partition)
            left -= rows.plain_bytes or 0
    return partitions, max(1, by_size[0].plain_bytes or 0)
