from pathlib import Path
from typing import Any

import anyio
import pyarrow as pa
import pytest

from tallymark.backends.errors import Unavailable
from tallymark.backends.local import LocalBackend
from tallymark.engine.errors import CorruptObject, InvalidRequest, Sealed
from tallymark.engine.tasks.file_growth import FooterSize
from tallymark.engine.tasks.open_file import OpenFile
from tallymark.engine.tasks.publisher import Publisher
from tests.engine.tasks.scene import FLIGHTS, STAGING, AtOnce, flights, footer, memory, schema_of, stored, ticket
from tests.support.faulty import FaultyBackend, lost_answer, lost_request

PATH = "month=1/f.parquet"


class Names:
    """Gives names whose markers were acked, and remembers the pauses between them."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.paused: list[float] = []

    def take(self, partition: str) -> str:
        self.taken.append("f.parquet" if not self.taken else f"f{len(self.taken)}.parquet")
        return self.taken[-1]


def begun(backend, schema=FLIGHTS, names=None, **settings):
    names = names or Names()
    job = ticket(schema, **settings)
    footer = FooterSize.of(job.schema)
    return OpenFile(job, backend, "month=1", names.take, first=rows(), footer=footer, pause=names.paused.append)


def published(file):
    """What a task makes of the file, without other threads."""
    publisher = Publisher(file._settings, AtOnce())
    publisher.add(file)
    return publisher.finish()[0]


def rows(count=10):
    return pa.Table.from_batches([flights(range(count))])


def written(backend, **named):
    file = begun(backend, **named)
    file.write(rows())
    return file


def test_a_published_file_is_what_its_data_file_says(backend):
    file = begun(backend)
    file.write(rows(3))
    file.write(rows(4))
    assert stored(backend).keys().isdisjoint({PATH})
    data_file = published(file)
    assert (data_file.path, data_file.rows, data_file.bytes) == (PATH, 7, len(stored(backend)[PATH]))
    assert footer(backend, PATH).num_row_groups == 2


def test_nothing_is_left_of_an_abandoned_file_and_abandoning_a_published_one_does_nothing(backend):
    file = written(backend)
    file.abandon()
    assert stored(backend) == {}
    file = written(backend)
    published(file)
    file.abandon()
    assert set(stored(backend)) == {PATH}


def test_the_file_has_the_promised_form(backend):
    text_field: pa.Field[Any] = pa.field("text", pa.string(), nullable=False, metadata={"comment": "what was said"})
    schema = schema_of(at=pa.timestamp("us", "UTC"), text=pa.string()).set(1, text_field)
    schema = schema.with_metadata({"org.apache.spark.sql.parquet.row.metadata": "{}"})
    file = begun(backend, schema, compression="snappy")
    file.write(pa.Table.from_pydict({"at": [1, 2], "text": ["a", "a"]}, schema=schema))
    published(file)
    metadata: Any = footer(backend, PATH)
    at, text = (metadata.row_group(0).column(number) for number in range(2))
    assert metadata.format_version == "2.6"
    assert metadata.metadata[b"org.apache.spark.sql.parquet.row.metadata"] == b"{}"
    assert metadata.schema.to_arrow_schema().equals(schema, check_metadata=True)
    assert (at.physical_type, text.compression) == ("INT64", "SNAPPY")
    assert "timeUnit=microseconds" in str(metadata.schema.column(0).logical_type)
    assert (text.statistics.min, text.statistics.null_count) == ("a", 0)
    assert "RLE_DICTIONARY" in text.encodings


@pytest.mark.parametrize("has_staging", [True, False])
def test_a_job_that_ended_meanwhile_seals_the_file(has_staging):
    storage = memory(has_staging=has_staging)
    file = written(storage)
    if has_staging:
        anyio.run(storage.close_staging, STAGING)
    else:
        anyio.run(storage.put_new, PATH, b"a fence")
    with pytest.raises(Sealed, match=r"20261121020304005 was committed or rolled back since; month=1/f.parquet"):
        published(file)
    file.abandon()
    assert stored(storage) == ({} if has_staging else {PATH: b"a fence"})


def test_no_file_can_be_begun_for_a_job_that_ended():
    storage = memory(has_staging=True)
    anyio.run(storage.close_staging, STAGING)
    with pytest.raises(Sealed):
        begun(storage)


def test_a_stranger_under_a_fresh_name_is_reported_and_not_touched():
    storage = memory(has_staging=True)
    file = begun(storage)
    anyio.run(storage.put, PATH, b"strange")
    with pytest.raises(CorruptObject, match=r"something lies at month=1/f\.parquet"):
        published(file)
    assert stored(storage) == {PATH: b"strange"}


@pytest.mark.parametrize("fault", [lost_answer, lost_request])
def test_a_file_whose_put_is_unclear_goes_under_another_name(fault):
    names = Names()
    storage = FaultyBackend(memory(has_staging=False), fault("publish", nth=1), fault("publish", nth=2))
    file = written(storage, names=names, publish_pause_s=0.5)
    found = published(file)
    assert (found.path, found.rows) == ("month=1/f2.parquet", 10)
    assert stored(storage.inner).keys() - {found.path} == (
        {PATH, "month=1/f1.parquet"} if fault is lost_answer else set()
    )
    assert len(set(stored(storage.inner).values())) == 1
    assert footer(storage.inner, found.path).num_rows == 10
    assert len(stored(storage.inner)[found.path]) == found.bytes
    assert names.paused == [0.5, 1.0]


@pytest.mark.parametrize(
    ("has_staging", "settings", "taken"),
    [(False, {}, 4), (False, {"publish_attempt_count": 1}, 1), (True, {}, 1)],
    ids=["each of four names", "the one name", "the one name of a rename"],
)
def test_an_outcome_that_stays_unknown_fails_the_file_and_no_name_is_put_twice(has_staging, settings, taken):
    names = Names()
    storage = FaultyBackend(memory(has_staging=has_staging), lost_answer("publish"))
    file = written(storage, names=names, **settings)
    with pytest.raises(Unavailable):
        published(file)
    assert names.taken == ["f.parquet", "f1.parquet", "f2.parquet", "f3.parquet"][:taken]
    assert storage.paths("publish") == [f"month=1/{name}" for name in names.taken]
    assert len(names.paused) == taken - 1
    file.abandon()


def test_a_job_that_ended_while_a_file_took_another_name_seals_it():
    storage = FaultyBackend(memory(has_staging=False), lost_request("publish", nth=1))
    anyio.run(storage.put_new, "month=1/f1.parquet", b"a fence")
    file = written(storage)
    with pytest.raises(Sealed, match=r"month=1/f1\.parquet was dropped"):
        published(file)
    file.abandon()
    assert stored(storage.inner) == {"month=1/f1.parquet": b"a fence"}


def test_values_that_parquet_cannot_hold_are_refused_with_the_partition(backend):
    schema = pa.schema([("at", pa.timestamp("ns"))])
    file = begun(backend, schema)
    with pytest.raises(InvalidRequest, match="partition 'month=1': Parquet cannot hold these rows"):
        file.write(pa.table({"at": pa.array([1], pa.timestamp("ns"))}))
    file.abandon()
    assert stored(backend) == {}


def test_a_sink_that_takes_no_first_byte_leaves_nothing(backend):
    schema = pa.schema([("x", pa.month_day_nano_interval())])
    with pytest.raises(pa.ArrowNotImplementedError):
        begun(backend, schema)
    assert stored(backend) == {}


class OnFullDisk(LocalBackend):
    """Its data files go to a device that takes no byte."""

    def new_file(self, path, *, staging):
        file: Any = super().new_file(path, staging=staging)
        file.sink.close()
        file._file = open("/dev/full", "wb", buffering=0)  # noqa: PTH123, SIM115
        return file


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this machine has no device that is always full")
def test_a_disk_that_fills_up_in_mid_file_is_unavailable_and_leaves_nothing(tmp_path):
    backend = OnFullDisk(tmp_path)
    anyio.run(backend.open_staging, STAGING)
    with pytest.raises(Unavailable, match=r"f\.parquet could not be written: .*No space left"):
        begun(backend).write(rows())
    assert stored(backend) == {}
