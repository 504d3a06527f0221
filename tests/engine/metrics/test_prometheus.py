"""What a scrape over HTTP finds of this process's jobs."""

import subprocess
import sys
from dataclasses import replace

import anyio
import anyio.to_thread
import pyarrow as pa
import pytest

from tallymark import ConflictError, MarkerSettings, MissingExtra, open_view, register_metrics
from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.memory import MemoryBackend
from tallymark.backends.meter import RequestMeter
from tallymark.engine.errors import CommitUnknown
from tallymark.engine.metrics.prometheus import METRICS
from tests.docs.markdown import names_in, table_after
from tests.engine.jobs.filling import appended
from tests.engine.jobs.scene import (
    Store,
    abandon,
    begin,
    committed,
    flights,
    impatient,
    name_of,
    table,
    write_in_thread,
    write_rows,
)
from tests.engine.jobs.test_fills import rivals
from tests.engine.upsert.scene import KEYED, changed, person
from tests.support.faulty import FaultyBackend, lost_answer, lost_request, slow
from tests.support.loops import on_both_loops
from tests.support.scrape import Grown

client = pytest.importorskip("prometheus_client", reason="needs the extra [prometheus]")


@on_both_loops
async def test_a_commit_is_counted_with_its_tasks_files_rows_bytes_and_markers(grown: Grown) -> None:
    storage = MemoryBackend()
    async with begin(storage, markers=MarkerSettings()) as job:
        report = await write_in_thread(job, storage, flights())
        result = await job.commit([replace(report, seconds=6.0, marker_wait_s=0.5)])
    seen = grown()
    assert seen.value("jobs_total", operation="append", outcome="committed") == 1
    assert seen.value("tasks_total") == 1
    assert seen.value("committed_files_total") == result.files
    assert seen.value("committed_rows_total") == result.rows
    assert seen.value("committed_bytes_total") == result.bytes
    assert seen.value("replaced_files_total") == 0
    assert seen.value("markers_total", kind="batched") == result.markers > 0
    assert seen.value("task_seconds_total") == 6.0
    assert seen.value("task_marker_wait_seconds_total") == 0.5
    assert seen.total("conflicts_total") == seen.total("rollbacks_total") == seen.total("cleans_total") == 0


@on_both_loops
async def test_markers_that_tasks_put_are_direct_ones_and_replaced_files_are_counted(unstaged, grown: Grown) -> None:
    await committed(unstaged.backend)
    before = grown()
    async with begin(unstaged.backend, "overwrite") as job:
        report = await write_in_thread(job, unstaged.backend, flights())
        result = await job.commit([report])
    seen = grown().since(before)
    assert seen.value("replaced_files_total") == result.removed_files == 2
    assert seen.value("markers_total", kind="direct") == result.direct_markers > 0


@on_both_loops
async def test_small_files_that_were_filled_are_counted_with_what_that_rewrote(unstaged, grown: Grown) -> None:
    first = await appended(unstaged.backend, {1: [1, 2]})
    before = grown()
    await appended(unstaged.backend, {1: [3]})
    seen = grown().since(before)
    assert seen.value("filled_files_total") == seen.value("replaced_files_total") == 1
    assert seen.value("rewritten_bytes_total") == first.bytes
    assert seen.value("lost_fills_total") == 0


@on_both_loops
async def test_rows_that_an_upsert_changes_are_counted_with_what_it_rewrote(grown: Grown) -> None:
    storage = MemoryBackend()
    first = await changed(storage, person(1, at=1), person(2, at=1), **KEYED)
    before = grown()
    result = await changed(
        storage, person(1, at=2), person(2, at=0), person(3, at=0), delete=pa.array([True, False, False])
    )
    seen = grown().since(before)
    rows = {
        outcome: seen.value("changed_rows_total", outcome=outcome) for outcome in ("inserted", "deleted", "ignored")
    }
    assert rows == {"inserted": 1, "deleted": 1, "ignored": 1}
    assert seen.value("looked_up_bytes_total") == seen.value("rewritten_bytes_total") == first.bytes
    assert seen.value("committed_rows_total") == result.rows == 1


@on_both_loops
async def test_what_is_counted_is_what_was_committed_though_a_small_file_was_lost_on_the_way(
    unstaged, grown: Grown
) -> None:
    async with rivals(unstaged) as (job, report, _):
        before = grown()
        result = await job.commit([report])
    seen = grown().since(before)
    assert seen.value("committed_files_total") == result.files == 1
    assert seen.value("committed_rows_total") == result.rows == 1
    assert seen.value("committed_bytes_total") == result.bytes
    assert seen.value("replaced_files_total") == result.removed_files == 0
    assert seen.value("filled_files_total") == seen.value("rewritten_bytes_total") == 0
    assert seen.value("lost_fills_total") == 1
    assert seen.value("tasks_total") == 1


async def test_an_ack_is_in_the_bucket_of_the_time_that_it_took(grown: Grown) -> None:
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.2, "*/MARKERS*"))
    async with begin(storage, markers=MarkerSettings()) as job:
        path = f"month=1/{name_of(job)}"
        await job._directory.create(path)
        seen = grown()  # the job runs on
        await job._directory.create(path)  # is durable
    buckets = {bound: seen.value("marker_ack_seconds_bucket", le=bound) for bound in ("0.1", "0.25", "30.0", "+Inf")}
    assert buckets == {"0.1": 0, "0.25": 1, "30.0": 1, "+Inf": 1}
    assert seen.value("marker_ack_seconds_count") == 1
    assert seen.value("marker_ack_seconds_sum") == pytest.approx(0.2)
    assert grown().value("marker_ack_seconds_bucket", le="0.001") == 1


@on_both_loops
async def test_what_tasks_look_up_is_counted_as_requests(grown: Grown) -> None:
    backend = Store(has_staging=True).backend
    await committed(backend)
    async with begin(backend, markers=MarkerSettings()) as job:

        def task() -> None:
            with open_view(job.ticket) as view:
                view.files_of(["month=1", "month=2"])
                view.files("month=1")

        await anyio.to_thread.run_sync(task)
        seen = grown()
    assert seen.value("look_ups_total") == 1


async def test_a_rollback_is_counted_whoever_makes_it(staged, grown: Grown) -> None:
    async with begin(staged.backend):
        pass
    assert grown().value("jobs_total", operation="append", outcome="rolled_back") == 1
    await abandon(staged, mode="overwrite")
    assert grown().value("jobs_total", operation="overwrite", outcome="failed") == 1
    assert grown().value("rollbacks_total") == 1
    staged.clock.pass_lease()
    await table(staged.backend).clean()
    assert grown().value("rollbacks_total") == 2
    assert grown().value("cleans_total") == 1


async def test_a_conflict_is_counted(grown: Grown) -> None:
    storage = MemoryBackend()
    with pytest.raises(ConflictError):  # noqa: PT012
        async with begin(storage, "overwrite") as job:
            report = await write_rows(job, storage)
            await committed(storage, "overwrite")
            await job.commit([report])
    seen = grown()
    assert seen.value("conflicts_total") == 1
    assert seen.value("jobs_total", operation="overwrite", outcome="rolled_back") == 1
    assert seen.value("jobs_total", operation="overwrite", outcome="committed") == 1


async def test_a_commit_of_which_storage_told_late_is_counted_as_one(grown: Grown) -> None:
    storage = FaultyBackend(MemoryBackend())
    with pytest.raises(CommitUnknown):  # noqa: PT012
        async with begin(table(storage, commit=impatient(5))) as job:
            report = await write_rows(job, storage)
            storage.add(lost_answer("put_new", "*/log/*"))
            storage.add(*(lost_request("get", "*/log/*", nth=count) for count in range(2, 100)))
            try:
                await job.commit([report])
            finally:
                storage.heal()
    seen = grown()
    assert seen.value("jobs_total", operation="append", outcome="committed") == 1
    assert seen.value("committed_rows_total") == report.rows
    assert seen.total("rollbacks_total") == 0


async def test_a_job_that_cannot_begin_has_failed(grown: Grown) -> None:
    storage = FaultyBackend(MemoryBackend())
    await committed(storage)
    storage.add(lost_request("put_new", "*/open/*"))
    with pytest.raises(Exception, match="request was lost"):
        await committed(storage)
    assert grown().value("jobs_total", operation="append", outcome="failed") == 1


@on_both_loops
async def test_requests_of_jobs_that_share_a_backend_are_counted_once_and_while_they_run(grown: Grown) -> None:
    storage = MeasuredBackend(MemoryBackend(), RequestMeter())
    await committed(storage)
    async with begin(storage) as one, begin(storage) as other:
        began, asked = grown(), storage.statistics().count
        assert began.value("jobs_running") == 2
        await one.commit([await write_rows(one, storage)])
        await other.commit([await write_rows(other, storage)])
        seen = grown().since(began)
        assert seen.total("storage_requests_total") == storage.statistics().count - asked
        assert seen.value("storage_requests_total", **{"class": "put", "outcome": "ok"}) > 0
    assert grown().value("jobs_running") == 0
    counted = began.total("storage_requests_total") + seen.total("storage_requests_total")
    assert grown().total("storage_requests_total") > counted


async def test_requests_before_a_job_and_between_jobs_are_none_of_theirs(grown: Grown) -> None:
    storage = MeasuredBackend(MemoryBackend(), RequestMeter())
    during = 0
    for _ in range(2):
        async with begin(storage) as job:
            asked = storage.statistics().count
            began = grown()
            await job.commit([await write_rows(job, storage)])
            during += storage.statistics().count - asked
            assert grown().since(began).total("storage_requests_total") == storage.statistics().count - asked
    assert during < grown().total("storage_requests_total") < storage.statistics().count


async def test_repeated_requests_are_retries(grown: Grown) -> None:
    meter = RequestMeter()
    storage = MeasuredBackend(MemoryBackend(), meter)
    async with begin(storage):
        meter.repeated()
    assert grown().value("storage_retries_total") == 1


def test_what_did_not_happen_yet_is_shown_as_none() -> None:
    program = (
        "import prometheus_client, tallymark\n"
        "tallymark.register_metrics(registry := prometheus_client.CollectorRegistry())\n"
        "print(registry.get_sample_value('tallymark_conflicts_total') == 0)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "True\n"


def test_registered_twice_it_shows_once() -> None:
    registry = client.CollectorRegistry()
    register_metrics(registry)
    register_metrics(registry)
    assert client.generate_latest(registry).decode().count("# HELP tallymark_jobs_total ") == 1


def test_without_prometheus_client_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tallymark\[prometheus\]'"):
        register_metrics()


def test_a_write_does_not_import_prometheus_client(tmp_path) -> None:
    program = (
        "import sys\n"
        "import anyio, pyarrow as pa, tallymark\n"
        "async def main():\n"
        f"    table = tallymark.open_table({str(tmp_path / 't')!r})\n"
        "    async with table.write(schema=pa.schema([('a', pa.int64())]), mode='append') as job:\n"
        "        await job.commit([])\n"
        "anyio.run(main)\n"
        "print('prometheus_client' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"


def test_the_documented_metrics_are_those_that_there_are() -> None:
    documented = {
        (names_in(name)[0], kind, tuple(names_in(labels)))
        for name, kind, labels, _ in table_after("operating.md", "## Metrics")
    }
    assert documented == {(metric.full_name, metric.kind, metric.labels) for metric in METRICS}
