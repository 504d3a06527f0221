"""What a commit asks of an object store: as many requests for 10,000 files as for 100, but for deletes by the thousand.

The files are reported, not written: what a task puts is its own data, one put a file. Requests are those that go over
the wire to an S3 server, with every page of a listing and every bulk delete.
"""

import math
from collections.abc import Mapping, Sequence
from typing import get_args
from uuid import uuid4

import pytest
import trio

from tallymark.backends import Backend, open_backend
from tallymark.backends.meter import RequestClass, RequestStatistics
from tallymark.engine.files.report import TaskReport
from tallymark.engine.settings import LeaseSettings, MarkerSettings
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.writes import WriteJob, open_table
from tallymark.engine.writes.request import Mode
from tests.engine.writes.scene import FLIGHTS

PARTITIONS = 12
NAMES_A_REQUEST = 500
"""As tasks of some partitions ask that run side by side."""

SELDOM = LeaseSettings(beat_interval_s=300, expiry_s=1200)
"""No beat in the time of the test: one more put and get every ten seconds."""

BULK = 1000
"""Names in one delete of S3."""

BODY_FROM = 10_000
"""An entry of so many files added, and twice as many removed, is above 1 MiB, and lies in an object of its own."""


@pytest.mark.parametrize("count", [100, 1_000, 10_000])
def test_a_commit_takes_as_many_requests_however_many_files_it_has(s3, bucket, count):
    first, append, overwrite = trio.run(_commits, s3, bucket, count)
    assert append == {"put": 5, "get": 2, "head": 0, "list": 2, "delete": 3}
    # The floor of the Hudi timeline is put again and found to be there; each partition gets its metadata once.
    assert first == {**append, "put": 5 + 3 + PARTITIONS, "head": 3}
    has_body = count >= BODY_FROM
    assert overwrite == {**append, "put": 5 + has_body, "delete": 3 + math.ceil(2 * count / BULK)}


async def _commits(s3, bucket: str, count: int) -> Sequence[Mapping[str, int]]:
    """Of the first append, the second one, and an overwrite of both: the requests of commit and end, by class."""
    backend = open_backend(f"s3://{bucket}/flights", options=s3.options)
    return [await _commit(backend, mode, count) for mode in _MODES]


async def _commit(backend: Backend, mode: Mode, count: int) -> Mapping[str, int]:
    table = open_table(backend.url, backend=backend, lease=SELDOM)
    markers = MarkerSettings(worker_count=1, hedge_after=None, merge_bytes_ratio_max=1)  # no put beside the commit's
    async with table.write(schema=FLIGHTS, mode=mode, partition_by=["month"], markers=markers) as job:
        report = await _report(job, count)
        before = _requests(backend)
        await job.commit([report])
    after = _requests(backend)
    return {name: after[name] - before[name] for name in after}


_MODES: Sequence[Mode] = ("append", "append", "overwrite")


async def _report(job: WriteJob, count: int) -> TaskReport:
    """What tasks report that have marked, and put, so many files."""
    files = [
        DataFile(f"month={number % PARTITIONS}", f"{uuid4()}-0_0-0-0_{job.instant}.parquet", 1000, 120_000_000)
        for number in range(count)
    ]
    for some in _pieces(files):
        await job._directory.create(*(file.path for file in some))
    return TaskReport(instant=job.instant, task=0, attempt=0, files=tuple(files))


def _pieces(files: Sequence[DataFile]) -> list[Sequence[DataFile]]:
    return [files[start : start + NAMES_A_REQUEST] for start in range(0, len(files), NAMES_A_REQUEST)]


def _requests(backend: Backend) -> Mapping[str, int]:
    """So far, by class. A bulk delete of S3 is a POST, and stands for a delete here."""
    statistics: RequestStatistics = backend.statistics()  # type: ignore[attr-defined]
    count = {name: statistics.of(name).count for name in get_args(RequestClass)}
    return {
        **{name: count[name] for name in ("put", "get", "head", "list")},
        "delete": count["delete"] + count["post"],
    }
