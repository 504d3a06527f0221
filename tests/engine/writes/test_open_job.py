"""The life of a job's service: it begins with the job and tells its tasks when that has ended."""

import anyio
import anyio.to_thread
import pytest

from tallymark.engine.errors import Sealed
from tallymark.engine.service.client import MarkerClient
from tallymark.engine.settings import MarkerSettings
from tests.engine.writes.scene import Store, begin
from tests.support.loops import on_both_loops


@on_both_loops
async def test_a_task_that_outlives_its_job_is_told_so_and_does_not_wait_for_the_service():
    async with begin(Store(has_staging=True).backend, markers=MarkerSettings()) as job:
        service = job.ticket.service
        assert service is not None
        client = MarkerClient(service, job.instant, wait_s=1000)
        await anyio.to_thread.run_sync(client.create, ["month=1/f.parquet"])
    with anyio.fail_after(10), pytest.raises(Sealed, match=f"instant {job.instant} has ended"):
        await anyio.to_thread.run_sync(client.create, ["month=1/g.parquet"])
    client.close()
