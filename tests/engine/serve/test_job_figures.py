"""Figures of live jobs: what a service has acked, how fast, and to how many tasks."""

import anyio

from tallymark.engine.errors import Sealed
from tallymark.engine.rpc.messages import CreateMarkers
from tallymark.engine.serve.job_figures import RATE_S, SILENT_S, JobFigures
from tests.support.loops import on_virtual_time


def requests(*counts: int) -> list[CreateMarkers]:
    return [
        CreateMarkers(number, tuple(f"f{each}" for each in range(count)), io="CREATE")
        for number, count in enumerate(counts)
    ]


async def ack(figures: JobFigures, job: str, after_s: float, *counts: int, refused: int = 0) -> None:
    settled = []

    async def settle(outcomes) -> None:
        settled.extend(outcomes)

    measured = figures.measured(job, settle)
    await anyio.sleep(after_s)
    found = requests(*counts)
    outcomes = [(each, Sealed("over") if number < refused else None) for number, each in enumerate(found)]
    await measured(outcomes)
    assert settled == outcomes


@on_virtual_time
async def test_acked_markers_their_rate_and_times_are_those_of_the_job():
    figures = JobFigures()
    for _ in range(99):
        await ack(figures, "a", 0.01, 2)
    await ack(figures, "a", 1.0, 2, 5, refused=1)
    await ack(figures, "b", 0.001, 1)
    report = figures.report({"a": 3})
    assert (report["a"]["markers"], report["a"]["tasks"], report["b"]["markers"], report["b"]["tasks"]) == (
        203,
        3,
        1,
        0,
    )
    assert report["a"]["acks_s"] == 203 / RATE_S
    for each, least in ((report["a"]["p50_s"], 0.01), (report["a"]["p99_s"], 0.01), (report["b"]["p99_s"], 0.001)):
        assert least <= (each or 0) <= 1.25 * least


@on_virtual_time
async def test_a_rate_falls_to_nothing_and_a_silent_job_is_forgotten_once_no_task_is_connected():
    figures = JobFigures()
    await ack(figures, "a", 0.01, 2)
    await ack(figures, "b", 40.0, 1)
    assert {job: each["acks_s"] for job, each in figures.report({"a": 1}).items()} == {"a": 0.0, "b": 1 / RATE_S}
    await anyio.sleep(SILENT_S)
    assert figures.report({"a": 1}).keys() == {"a"}
    assert figures.report({}) == {}
