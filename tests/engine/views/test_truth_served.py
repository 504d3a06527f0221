"""Whatever befalls a table: what its tasks look up is the truth, asked of a job's service or read in the log."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallymark.backends import Backend
from tallymark.engine.lookups.job_view import open_view
from tallymark.engine.lookups.source import JobViewStatistics
from tallymark.engine.settings import CommitSettings, MarkerSettings, ViewSettings
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.log import CommitLog
from tests.engine.jobs.scene import begin, table
from tests.engine.views.table_histories import InMemory, Player, Step, Wait, Write, histories, without_threads
from tests.engine.views.test_truth import readers
from tests.engine.views.truth import Truth
from tests.support.dying import DyingBackend
from tests.support.examples import examples

in_thread = trio.to_thread.run_sync

VIEWS = ViewSettings(log_jitter_s=0.0, log_readings=1000, keep_positions=3, checkpoint_entries=2)
PARTITIONS = ("month=1", "month=2", "month=3", "month=99")


def asked(ticket: WriteTicket, backend: Backend) -> tuple[dict[str, Any], JobViewStatistics]:
    """As a task does: the files of each partition, and whether each is found by its id, and as a small one."""
    with open_view(ticket, backend=backend) as view:
        found: dict[str, Any] = view.files_of(PARTITIONS)
        for partition, files in found.items():
            assert view.files(partition) == files
            assert [view.file(partition, file.file_id) for file in files] == list(files)
            for limit in {file.bytes for file in files}:
                small = tuple(file for file in files if file.bytes < limit)
                assert view.small_files(partition, below=limit) == small
        return found, view.statistics()


def told(truth: Truth, position: int) -> dict[str, Any]:
    held = sorted(truth.by_the_log(position), key=lambda file: file.path)
    return {partition: tuple(file for file in held if file.partition == partition) for partition in PARTITIONS}


async def look_up(job_ticket: WriteTicket, backend: Backend, truth: Truth) -> None:
    """Of every position: the service answers for those since its job began, and for older ones at least the log."""
    history = await CommitLog(backend, CommitSettings()).refresh()
    elsewhere = DyingBackend(backend)  # a process that never hears of the service
    for position in range(truth.head + 1):
        ticket = replace(job_ticket, base=position, base_hash=history.hash_at(position))
        found, reading = await in_thread(asked, ticket, backend)
        assert found == told(truth, position), f"position {position}, asked of the service"
        assert position < job_ticket.base or (reading.by_log, reading.source) == (0, "service")
        found, reading = await in_thread(asked, replace(ticket, service=None), elsewhere)
        assert found == told(truth, position), f"position {position}, read in the log"
        assert reading.log_readings == 1 or position == 0  # all logs have the same start, which may be at hand


async def play(place: InMemory, kind: str, steps: Sequence[Step]) -> None:
    player = Player(place, kind, VIEWS)
    await player.found()
    where = table(place.backend, views=VIEWS)
    async with begin(where, markers=MarkerSettings(kind="batched")) as job:
        for step in steps:
            await player.play(step)
        await look_up(job.ticket, place.backend, Truth(place.objects))


def test_a_job_serves_its_base_however_many_commits_precede_the_first_lookup():
    steps = [Step(Write(mode="overwrite"), dies_at=None, is_followed=False)] * (VIEWS.keep_positions + 3)
    trio.run(play, InMemory(has_staging=False), "directory", steps)


brief = histories.map(lambda steps: [step for step in steps if not isinstance(step.act, Wait)])
"""The job outlives no lease: time is real here, and that of the store stands still."""


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kind=readers, has_staging=st.booleans(), steps=brief)
def test_look_ups_of_tasks_are_the_truth_at_every_position(kind, has_staging, steps):
    with without_threads():
        trio.run(play, InMemory(has_staging=has_staging), kind, steps)
