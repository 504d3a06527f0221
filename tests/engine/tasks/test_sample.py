import random
from dataclasses import replace

import pyarrow as pa
import pytest

from tallymark.engine.arrow.plain_size import plain_bytes
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.sizing.profile import Sample
from tallymark.engine.tasks.sample import sample_task
from tests.engine.tasks.scene import FLIGHTS, flights, footer, local, schema_of, ticket, write


def sampled(job, batches) -> Sample:
    sample = sample_task(job, batches)
    assert sample is not None
    return sample


def test_a_sample_takes_what_the_columns_of_a_file_with_its_rows_take(tmp_path):
    rows = [flights(range(start, start + 1000)) for start in (0, 1000, 2000)]
    sample = sampled(ticket(), rows)
    backend = local(tmp_path)
    (file,) = write(ticket(), rows, backend).files
    group = footer(backend, file.path).row_group(0)
    encoded = sum(group.column(place).total_compressed_size for place in range(group.num_columns))
    assert (sample.rows, sample.encoded_bytes) == (3000, encoded)
    assert sample.plain_bytes == sum(map(plain_bytes, rows))


def test_the_codec_is_the_tickets():
    rows = [flights(range(5000))]
    sizes = [sampled(ticket(compression=codec), rows) for codec in ("none", "zstd")]
    assert sizes[0].encoded_bytes > 1.2 * sizes[1].encoded_bytes


def test_no_more_batches_are_taken_than_a_row_group_holds():
    taken = []

    def batches():
        for start in range(0, 100_000, 1000):
            taken.append(start)
            yield flights(range(start, start + 1000))

    sample = sampled(ticket(row_group_bytes=5 * flights(range(1000)).nbytes), batches())
    assert (sample.rows, len(taken)) == (5000, 5)


def test_rows_of_many_partitions_are_encoded_as_they_would_be_in_files_of_one():
    order = random.Random(1)
    months = [flights(order.sample(range(10**6), 5000), months=12)]
    sorted_, mixed = sampled(ticket(FLIGHTS, "month"), months), sampled(ticket(FLIGHTS), months)
    assert mixed.encoded_bytes - sorted_.encoded_bytes > 5000 * 3 / 8  # four bits of a month, but for some runs


def test_static_columns_are_filled_in():
    job = replace(ticket(FLIGHTS, "month"), partition=StaticPartition(("month",), (7,)))
    lacking = flights(range(10)).drop_columns(["month"])
    assert sampled(job, [lacking]).plain_bytes == plain_bytes(flights(range(10)))


def test_no_rows_are_no_sample():
    assert sample_task(ticket(), []) is None
    assert sample_task(ticket(), [flights([])]) is None


def test_rows_that_do_not_fit_are_refused_and_those_that_parquet_cannot_hold_are_left_to_the_write():
    with pytest.raises(InvalidRequest, match=r"'origin' .* is missing"):
        sampled(ticket(), [flights(range(3)).drop_columns(["origin"])])
    times = schema_of(at=pa.timestamp("ns"))
    odd = pa.record_batch([pa.array([1], pa.timestamp("ns"))], schema=times)
    assert sample_task(ticket(times), [odd]) is None
