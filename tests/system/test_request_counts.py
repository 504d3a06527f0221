"""What a commit asks of an object store: as many requests for 10,000 files as for 100, but for deletes by the thousand.

The files are reported, not written: what a task puts is its own data, one put a file. Requests are those that go over
the wire to an S3 server, with every page of a listing and every bulk delete.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from uuid import uuid4

import pytest
import trio

from tallymark.backends import Backend, StorageOptions, open_backend
from tallymark.engine.jobs.request import Mode
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance.checkpoint import FIRST_AFTER
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.profile import IncomingRows, WorkloadProfile
from tallymark.engine.table import open_table
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.timeline.entry import DataFile
from tests.engine.jobs.scene import FLIGHTS
from tests.system.wire import ONE_FLUSH, SELDOM, between, requests

PARTITIONS = 12
NAMES_A_REQUEST = 500
"""As tasks of some partitions ask that run side by side."""

BULK = 1000
"""Names in one delete of S3."""

BODY_FROM = 10_000
"""An entry of so many files added, and twice as many removed, is above 1 MiB, and lies in an object of its own."""


@pytest.mark.parametrize("count", [100, 1_000, 10_000])
def test_a_commit_takes_as_many_requests_however_many_files_it_has(s3, bucket, count):
    first, append, overwrite = (commit for _, commit in trio.run(_jobs, s3, bucket, count))
    assert append == {"put": 5, "get": 2, "head": 0, "list": 0, "delete": 1}
    # The floor of the Hudi timeline is put again and found to be there; each partition gets its metadata once. A writer
    # that has read no entry asks for a checkpoint: the log may have been archived from its first entry on.
    assert first == {**append, "put": 5 + 3 + PARTITIONS, "head": 3}
    has_body = count >= BODY_FROM
    assert overwrite == {**append, "put": 5 + has_body, "delete": 1 + math.ceil(2 * count / BULK)}


def test_a_commit_of_tasks_of_one_process_puts_one_object_less(s3, bucket):
    """``DIRECT``, after which no other process puts markers."""

    async def commits() -> Sequence[Mapping[str, int]]:
        backend = open_backend(f"s3://{bucket}/flights", options=_patient(s3))
        return [(await _job(backend, "append", 10, is_private=is_private))[1] for is_private in (False, False, True)]

    _, shared, private = trio.run(commits)
    assert private == {**shared, "put": shared["put"] - 1}


def test_an_append_lists_the_bookkeeping_once_and_nothing_else(s3, bucket):
    """From its begin to its end, with the markers of its tasks between: where no other instant is open."""
    first, *later = trio.run(_appends, s3, bucket, 4)
    assert first["list"] > 1
    assert [requests["list"] for requests in later] == [1, 1, 1]
    assert [requests["get"] for requests in later] == [8 + entries for entries in (1, 2, 3)]


def test_an_append_from_a_checkpoint_on_lists_the_bookkeeping_once(s3, bucket):
    found = trio.run(_from_a_checkpoint, s3, bucket)
    assert [requests["list"] for requests in found] == [1, 1, 1, 1]
    reservation, markers, commit = 1, 3, 5
    """The markers' type, the claim of the server's segments, and one segment."""
    assert [requests["put"] for requests in found] == [reservation + markers + commit] * 4


def _patient(s3) -> StorageOptions:
    """A request that a busy machine leaves unanswered for some seconds would be sent, and counted, twice."""
    options: StorageOptions = replace(s3.options, request_timeout_s=60.0, answer_timeout_s=120.0)
    return options


async def _from_a_checkpoint(s3, bucket: str) -> Sequence[Mapping[str, int]]:
    await _appends(s3, bucket, 2)
    await open_table(f"s3://{bucket}/flights", options=_patient(s3)).checkpoint()
    return await _appends(s3, bucket, 4)


@pytest.mark.parametrize("sizing", [None, SizingSettings()])
def test_a_checkpoint_takes_five_listings_and_an_append_one(s3, bucket, sizing):
    *_, before, after, later = trio.run(_appends, s3, bucket, FIRST_AFTER + 2, sizing)
    own = 1 if sizing is None else 2
    """A write that plans its files looks for those that others are filling."""
    assert before["list"] == own + 5
    assert (after["list"], later["list"]) == (own, own)


async def _appends(s3, bucket: str, count: int, sizing: SizingSettings | None = None) -> Sequence[Mapping[str, int]]:
    """All requests of so many appends, one after the other."""
    backend = open_backend(f"s3://{bucket}/flights", options=_patient(s3))
    ends = [requests(backend)]
    for _ in range(count):
        await _job(backend, "append", 10, sizing)
        ends.append(requests(backend))
    return [between(before, after) for before, after in pairwise(ends)]


async def _jobs(s3, bucket: str, count: int) -> Sequence[tuple[Mapping[str, int], Mapping[str, int]]]:
    """Of the first append, the second one, and an overwrite of both: requests of the begin, and of commit and end."""
    backend = open_backend(f"s3://{bucket}/flights", options=_patient(s3))
    return [await _job(backend, mode, count) for mode in _MODES]


async def _job(
    backend: Backend, mode: Mode, count: int, sizing: SizingSettings | None = None, *, is_private: bool = False
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    before = requests(backend)
    table = open_table(backend.url, backend=backend, lease=SELDOM)
    async with table.write(schema=FLIGHTS, mode=mode, partition_by=["month"], markers=ONE_FLUSH, sizing=sizing) as job:
        if sizing is not None:
            await job.size(WorkloadProfile(incoming=(IncomingRows("month=1", 1000, 1000),)))
        if not is_private:
            job.ticket.encode()  # as for tasks of other processes
        begun = requests(backend)
        report = await _report(job, count)
        reported = requests(backend)
        await job.commit([report])
    return between(before, begun), between(reported, requests(backend))


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
