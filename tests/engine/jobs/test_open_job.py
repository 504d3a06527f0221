"""The life of a job's service: it begins with the job and tells its tasks when that has ended."""

import anyio
import anyio.to_thread
import pytest

from tallymark.engine.errors import Sealed, ServiceUnavailable
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.settings import MarkerSettings, ViewSettings
from tallymark.engine.views.view import live_files
from tests.engine.jobs.scene import begin, committed, name_of, table

pytestmark = pytest.mark.usefixtures("loop")


async def test_a_task_that_outlives_its_job_is_told_so_and_does_not_wait_for_the_service(staged):
    async with begin(staged.backend, markers=MarkerSettings()) as job:
        service = job.ticket.service
        assert service is not None
        client = JobClient(service, job.instant, wait_s=1000)
        await anyio.to_thread.run_sync(client.create, [f"month=1/{name_of(job)}"])
    with anyio.fail_after(60), pytest.raises(Sealed, match=f"instant {job.instant} has ended"):
        await anyio.to_thread.run_sync(client.create, ["month=1/g.parquet"])
    client.close()


async def look_up(job: WriteJob, partition: str):
    """As a task of the job would, at the position where the job began."""
    ticket = job.ticket
    assert ticket.service is not None
    with JobClient(ticket.service, job.instant, wait_s=10) as client:
        found = client.look_up(ticket.base, ticket.base_hash, [partition], wait_s=10)
        blocks = await anyio.to_thread.run_sync(found.result)
    return live_files(blocks[partition], partition, ticket.base)


async def test_the_service_tells_tasks_what_a_partition_held_when_the_job_began(staged):
    first = await committed(staged.backend)
    async with begin(staged.backend, markers=MarkerSettings()) as job:
        before = await table(staged.backend).snapshot()
        await committed(staged.backend, "overwrite", {1: 7})  # of another job, meanwhile
        files = await look_up(job, "month=1")
    assert job.ticket.base == first.position
    assert files == tuple(file for file in before.files if file.partition == "month=1") != ()


async def test_a_job_that_is_told_not_to_serve_views_serves_markers_alone(staged):
    async with begin(table(staged.backend, views=ViewSettings(serve=False)), markers=MarkerSettings()) as job:
        with pytest.raises(ServiceUnavailable, match=r"ViewSettings\.serve"):
            await look_up(job, "month=1")
        assert not job.ticket.views.serve
