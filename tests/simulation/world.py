"""A run: drivers and their tasks, visitors and readers, and a process that recovers the table after them."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import trio

from tallymark.backends.errors import TallymarkError, Unavailable
from tallymark.engine.errors import CommitUnknown, TryAgain, UnsupportedTable
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance.checkpoint import archive_up_to
from tallymark.engine.settings import (
    CommitSettings,
    LeaseSettings,
    MarkerSettings,
    ServiceSettings,
    SizingSettings,
    TaskSettings,
    ViewSettings,
)
from tallymark.engine.sizing import IncomingRows, PlannedFile, WorkloadProfile
from tallymark.engine.table import Table, open_table
from tallymark.engine.tasks.report import TaskReport
from tests.history import Based, Befell, Finished, Held, History, Read, Released, Told
from tests.simulation.executor import (
    ROWS,
    Stage,
    TasksFailed,
    partition_by,
    partition_of,
    schema_of,
    write_flights,
)
from tests.simulation.fault_profile import FaultProfile
from tests.simulation.keyed.change import change
from tests.simulation.lives.damage import damage_markers
from tests.simulation.lives.histories import Life, lives_of
from tests.simulation.lives.replacing import drop_beyond_a_gap, replace_table
from tests.simulation.plan import YEARS, AttemptPlan, Plan, TaskPlan, ViewerPlan, VisitorPlan, WriterPlan
from tests.simulation.process import Process
from tests.simulation.scene import Scene
from tests.simulation.seams import simulated_machines
from tests.simulation.shared.service import settings_of, start_services
from tests.simulation.storage import Port
from tests.simulation.together.driver import StreamRun
from tests.simulation.viewer import follow
from tests.table_invariants import LOG, log_head

LEASE = LeaseSettings()
COMMIT = CommitSettings()
TASKS = TaskSettings(row_group_bytes=1, buffer_bytes=1 << 20)
"""Every batch is encoded at once."""

KEYED_SIZE = 3
"""A file of rows with a key and an order takes so many times as much."""

SETTLED_S = 1000.0
"""By then everything that was sent has landed, and every task has ended."""


@dataclass
class Outcome:
    """What a run leaves for its judges."""

    plan: Plan
    history: History
    after_the_first_write: dict[str, bytes] = field(default_factory=dict)
    at_rest: dict[str, bytes] = field(default_factory=dict)
    swept: dict[str, bytes] = field(default_factory=dict)
    """Storage right after the rescuer's write; when all is quiet, cleaned; and a day later, cleaned again."""
    tasks: dict[str, tuple[TaskPlan, ...]] = field(default_factory=dict)
    """What each writer was to write, founder and rescuer, too."""
    undisturbed: set[str] = field(default_factory=set)
    """Writers whom nothing has befallen, and whose requests went through."""
    lives: list[Life] = field(default_factory=list)
    damaged: str | None = None
    """The instant whose markers have lost bytes."""
    disturbed: set[str] = field(default_factory=set)
    """Processes of every kind that something has befallen."""
    occurred: Counter[str] = field(default_factory=Counter)
    job_s: float = 0.0
    steps: int = 0

    @property
    def has_operator(self) -> bool:
        """Return whether an operator rolls back living writers by name."""
        return any(visitor.what == "roll back one" for visitor in self.plan.visitors)


def run(plan: Plan) -> Outcome:
    """Play the plan to its end. Raises Stuck if a task waits permanently."""
    scene = Scene(plan)
    outcome = Outcome(plan, scene.history)
    with simulated_machines(scene):
        scene.kernel.run(partial(_play, scene, outcome))
    outcome.disturbed = {process.name for process in scene.processes.values() if process.was_disturbed}
    outcome.lives, outcome.damaged = lives_of(outcome.history), scene.damaged
    outcome.steps = scene.kernel.step_count
    outcome.occurred = scene.objects.mishaps + scene.network.mishaps + scene.mishaps
    return outcome


async def _play(scene: Scene, outcome: Outcome) -> None:
    async with trio.open_nursery() as scene.nursery:
        try:
            await _act(scene, outcome)
        finally:
            scene.close()


async def _act(scene: Scene, outcome: Outcome) -> None:
    if scene.plan.has_past:
        await _alone(scene, "founder", partial(_found, scene, outcome))
    start_services(scene)
    drivers = _drivers(scene.plan)
    processes = [_driver(scene, outcome, jobs) for jobs in drivers]
    processes += [_visitor(scene, number, plan) for number, plan in enumerate(scene.plan.visitors)]
    processes += [_viewer(scene, number, plan) for number, plan in enumerate(scene.plan.viewers)]
    if scene.plan.damage is not None:
        scene.nursery.start_soon(damage_markers, scene, scene.plan.damage)
    if scene.plan.replacement is not None:
        await replace_table(scene, scene.plan.replacement)
    for stream in scene.plan.streams:
        await StreamRun(scene, stream).play(partial(_table, scene), processes)
    for process in processes:
        await process.has_ended.wait()
    drop_beyond_a_gap(scene)
    undisturbed = {process.name for process in processes if _is_undisturbed(scene, process)}
    outcome.undisturbed = undisturbed | {name for first, *others in drivers if first in undisturbed for name in others}
    await _recover_and_clean(scene, outcome, processes)


async def _recover_and_clean(scene: Scene, outcome: Outcome, processes: Iterable[Process]) -> None:
    """The first write that may roll back what dead writers left; then peace, and a day later the last sweep."""
    is_elsewhere = any(process.host != scene.plan.rescuer_host for process in processes)
    if is_elsewhere and any(writer.mishap and writer.mishap.dies_after_steps for writer in scene.plan.writers):
        await trio.sleep(LEASE.expiry_s)  # it may have beaten in the moment between
    while is_elsewhere and scene.lease_left_s(LEASE.expiry_s) > 0:  # noqa: ASYNC110  # no event marks the end of a lease
        await trio.sleep(scene.lease_left_s(LEASE.expiry_s))  # a heartbeat that lands late counts
    drop_beyond_a_gap(scene)
    await _alone(scene, "rescuer", partial(_rescue, scene, outcome))
    outcome.after_the_first_write = scene.objects.whole
    await trio.sleep(SETTLED_S)
    drop_beyond_a_gap(scene)  # a copy of such an entry may have arrived since
    await _alone(scene, "cleaner", partial(_clean, scene))
    outcome.at_rest = scene.objects.whole
    await trio.sleep(COMMIT.zombie_after_s)
    await _alone(scene, "sweeper", partial(_clean, scene))
    outcome.swept = scene.objects.whole


async def _alone(scene: Scene, name: str, act: Callable[[Process], Awaitable[None]]) -> None:
    process = scene.process(name, scene.plan.rescuer_host)
    scene.start(process, act, process)
    await process.has_ended.wait()


async def _found(scene: Scene, outcome: Outcome, process: Process) -> None:
    faults = scene.faults
    await _write_undisturbed(scene, outcome, process, months=(1, 1, 1, 2, 2, 2, 3))
    scene.faults = faults


async def _rescue(scene: Scene, outcome: Outcome, process: Process) -> None:
    fill_bytes = max((writer.fill_bytes for writer in scene.plan.writers), default=0)
    await _write_undisturbed(scene, outcome, process, months=(1,), fill_bytes=fill_bytes)


async def _write_undisturbed(
    scene: Scene, outcome: Outcome, process: Process, months: tuple[int, ...], fill_bytes: int = 0
) -> None:
    plan = WriterPlan(
        host=process.host, start_s=0, clock_s=0, mode="append", dynamic=False, kind="direct", fill_bytes=fill_bytes,
        tasks=(TaskPlan(months=months, attempts=(AttemptPlan(host=process.host, start_s=0, row_s=0),)),),
    )  # fmt: skip
    scene.faults = FaultProfile()
    await _write(scene, outcome, process, (process.name, plan), _table(scene, process))


async def _clean(scene: Scene, process: Process) -> None:
    await _table(scene, process).clean()


def _is_undisturbed(scene: Scene, process: Process) -> bool:
    ports = [port for port in scene.ports if port.process is process]
    return not process.was_disturbed and not any(port.mishap_count for port in ports)


def _drivers(plan: Plan) -> list[dict[str, WriterPlan]]:
    """The jobs of each driver, by their names; the first one's is that of the process."""
    found: dict[int, dict[str, WriterPlan]] = {}
    for number, writer in enumerate(plan.writers):
        found.setdefault(writer.driver or -number - 1, {})[f"writer{number}"] = writer
    return list(found.values())


def _driver(scene: Scene, outcome: Outcome, jobs: dict[str, WriterPlan]) -> Process:
    (name, first), *_ = jobs.items()
    process = scene.process(name, first.host, first.mishap, clock_s=first.clock_s)
    process.respects_claims, process.loses_rewrite_answer = first.respects_claims, first.loses_rewrite_answer
    process.reserves_late_s, process.entry_fates = first.reserves_late_s, list(first.entry_fates)
    scene.start(process, _run_jobs, scene, outcome, process, jobs)
    return process


async def _run_jobs(scene: Scene, outcome: Outcome, process: Process, jobs: dict[str, WriterPlan]) -> None:
    table = _table(scene, process)
    first, *others = jobs.items()
    if not others:
        await _write(scene, outcome, process, first, table)
        return
    async with trio.open_nursery() as nursery:
        for job in (first, *others):
            nursery.start_soon(_write, scene, outcome, process, job, table)


async def _write(scene: Scene, outcome: Outcome, process: Process, named: tuple[str, WriterPlan], table: Table) -> None:
    name, plan = named
    outcome.tasks[name] = plan.tasks
    await trio.sleep(plan.start_s)
    if plan.beats_lost_after_s:
        process.beats_lost_at = scene.kernel.now + plan.beats_lost_after_s
    began = trio.current_time()
    instant = None
    told = partial(_record_result, scene, name)
    by_year = scene.plan.by_year
    scene.preparing.add(process)
    try:
        base = await _read_before(table, plan)
        async with table.write(
            schema=schema_of(scene.plan),
            mode=plan.mode,
            partition_by=partition_by(scene.plan),
            partition=_named(plan, by_year=by_year),
            partition_overwrite="dynamic" if plan.dynamic else "static",
            base=base,
            txn=plan.txn,
            readers="directory" if scene.plan.retain_hours is None else "table",
            retain_hours=scene.plan.retain_hours,
            markers=MarkerSettings(kind=plan.kind, queue_limit=plan.queue_limit),
            tasks=TASKS,
            sizing=sizing_of(plan, scene.plan),
            **key_options(plan, scene.plan),
            service=settings_of(scene, process.pid) if plan.is_shared else ServiceSettings(host=process.host),
        ) as job:
            scene.preparing.discard(process)
            if job.committed is not None:
                told(job.committed.instant, "committed", "as another had done")
                return
            instant = job.instant
            note_instant(scene, name, instant)
            if base is not None:
                scene.history.record(Based(at=scene.kernel.now, writer=name, instant=instant, position=base))
            if plan.is_keyed:
                assert name == process.name, "the other jobs of a driver append and overwrite"
                reports = await change(scene, process, job, plan)
            else:
                planned = await planned_files(job, plan, by_year=by_year)
                work = partial(write_flights, name, plan.tasks, planned)
                stage = Stage(scene, process, job.ticket, plan.tasks, work, job=name)
                reports = await stage.run(plan.patience_s)
            if plan.raises:
                raise TasksFailed
            scene.record(Befell, process=name, what="commits")
            result = await _commit(job, reports, again=plan.commits_again)
            told(result.instant, "committed", f"at position {result.position}, {result.changes}")
        if _is_finished(job):
            scene.history.record(Finished(at=scene.kernel.now, writer=name, instant=result.instant))
    except TasksFailed:
        told(await _own(job), "TasksFailed")
    except TallymarkError as error:
        told(instant and await _own(job), type(error).__name__, str(error))
    finally:
        scene.preparing.discard(process)
        if not process.is_closed:
            outcome.job_s += trio.current_time() - began


def _named(plan: WriterPlan, *, by_year: bool) -> dict[str, int] | None:
    """The values of first partition columns that the writer names."""
    if plan.month is not None:
        return {"year": YEARS[plan.month], "month": plan.month} if by_year else {"month": plan.month}
    return {"year": plan.year} if by_year and plan.year is not None else None


async def _read_before(table: Table, plan: WriterPlan) -> int | None:
    """The position that the writer goes by; None where there was nothing to read."""
    if plan.read_before_s is None:
        return None
    try:
        position = (await table.snapshot()).position
    except UnsupportedTable:
        return None
    await trio.sleep(plan.read_before_s)
    return position


def note_instant(scene: Scene, job: str, instant: str) -> None:
    """Note whose an instant is, unless another writer has had it, and finished: which the job is to notice."""
    stored = scene.objects.data.items()
    if not any(path.startswith(LOG) and instant.encode() in data for path, data in stored):
        scene.record(Befell, process=job, what=f"has instant {instant}")


async def _own(job: WriteJob) -> str | None:
    """The job's instant; None where another writer had it before, and finished: what is told is not of that one."""
    is_lost = job._confirmed.is_loaded and not await job._confirmed.get()
    return None if is_lost else job.instant


def _is_finished(job: WriteJob) -> bool:
    return job.committed is not None and job.committed.pending is None


async def _commit(job: WriteJob, reports: list[TaskReport], *, again: bool) -> WriteResult:
    try:
        return await job.commit(reports)
    except (TryAgain, Unavailable, CommitUnknown):
        if not again:
            raise
        return await job.commit(reports)


def _record_result(scene: Scene, job: str, instant: str | None, outcome: str, message: str = "") -> None:
    scene.record(Told, writer=job, instant=instant, outcome=outcome, message=message)


def _viewer(scene: Scene, number: int, plan: ViewerPlan) -> Process:
    process = scene.process(f"viewer{number}", plan.host, plan.mishap)
    scene.start(process, follow, scene, process, _table(scene, process), plan)
    return process


def _visitor(scene: Scene, number: int, plan: VisitorPlan) -> Process:
    process = scene.process(f"visitor{number}", plan.host, plan.mishap)
    first = scene.processes.get("writer0")
    called = trio.Event()
    if plan.is_at_entry and first is not None:
        first.after_request("put", "/log/", partial(scene.kernel.soon, called.set), steps=0)
        scene.nursery.start_soon(_call, first, called)
    else:
        called.set()
    scene.start(process, _visit, scene, process, plan, called)
    return process


async def _call(process: Process, called: trio.Event) -> None:
    await process.has_ended.wait()
    called.set()


async def _visit(scene: Scene, process: Process, plan: VisitorPlan, called: trio.Event) -> None:
    if not called.is_set():
        await called.wait()
    for moment in plan.at_s:
        await trio.sleep_until(moment)
        scene.note(process, f"does its round: {plan.what}")
        visit = partial(_read_under_lease, plan) if plan.what == "read under a lease" else _VISITS[plan.what]
        scene.preparing.add(process)
        try:
            await visit(scene, process)
        except UnsupportedTable:
            continue  # there is none yet
        except TallymarkError as error:
            scene.note(process, f"gives up: {error!r}")
        finally:
            scene.preparing.discard(process)


async def _read(scene: Scene, process: Process) -> None:
    head_before, life = log_head(scene.objects.whole), scene.objects.life
    snapshot = await _table(scene, process).snapshot()
    if life != scene.objects.life:
        return
    files = tuple(file.path for file in snapshot.files)
    scene.history.record(
        Read(at=scene.kernel.now, reader=process.name, head_before=head_before, position=snapshot.position, files=files)
    )


async def _read_under_lease(plan: VisitorPlan, scene: Scene, process: Process) -> None:
    """A query: it opens one file after the other, and takes its time."""
    port = scene.port(process)
    table = _table_at(scene, process, port)
    as_of = None if plan.back is None else max(0, (await table.snapshot()).position - plan.back)
    async with table.reading(as_of=as_of) as snapshot:
        files = tuple(file.path for file in snapshot.files)
        held = Held(at=scene.kernel.now, reader=process.name, position=snapshot.position, files=files)
        scene.history.record(held)
        try:
            for path in files:
                await trio.sleep(plan.hold_s / len(files))
                await port.get(path)
        finally:
            scene.history.record(Released(at=scene.kernel.now, reader=process.name))


async def _clean_at_once(scene: Scene, process: Process) -> None:
    """Where little is kept of the log, it is archived, too, as by a purge."""
    table = _table(scene, process)
    await table.clean(retain_hours=0)
    if scene.plan.kept_entries == 1:
        head, properties = (await table.snapshot()).position, await table._properties()
        await archive_up_to(table._handle(properties), properties, head - 1)


async def _roll_back_dead(scene: Scene, process: Process) -> None:
    await _table(scene, process).rollback()


async def _roll_back_one(scene: Scene, process: Process) -> None:
    """Roll back the newest open instant by name, whether its writer is alive or not, as an operator might."""
    table = _table(scene, process)
    instants = [reservation.instant for reservation in await table.open_instants()]
    if instants:
        scene.note(process, f"rolls back {instants[-1]} by name")
        await table.rollback(instants[-1])


_VISITS = {
    "read": _read,
    "clean": _clean,
    "clean at once": _clean_at_once,
    "roll back the dead": _roll_back_dead,
    "roll back one": _roll_back_one,
}


def _table(scene: Scene, process: Process) -> Table:
    return _table_at(scene, process, scene.port(process))


def _table_at(scene: Scene, process: Process, port: Port) -> Table:
    views = ViewSettings(checkpoint_entries=scene.plan.checkpoint_entries)
    kept = scene.plan.kept_entries
    commit = replace(COMMIT, log_entry_count=kept, timeline_commit_count=kept)
    return open_table("memory:", backend=port, clock=scene.clock(process), lease=LEASE, commit=commit, views=views)


def sizing_of(plan: WriterPlan, table: Plan) -> SizingSettings:
    """Without fills a file is full with its second batch. A writer that fills may rewrite a file without limit."""
    wider = KEYED_SIZE if table.unique_in else 1
    if not plan.fill_bytes:
        return SizingSettings(max_file_bytes=1000 * wider, small_file_bytes=0)
    size = plan.fill_bytes * wider
    return SizingSettings(max_file_bytes=size, small_file_bytes=size, rewrite_budget=1000)


def key_options(plan: WriterPlan, table: Plan) -> dict[str, Any]:
    """Return what a write says about the key of its table."""
    if table.unique_in is None:
        return {}
    options: dict[str, Any] = {"record_key": "key", "order_by": "at", "unique_in": table.unique_in}
    if plan.mode == "upsert" and plan.matched != "update":
        options |= {"when_matched": "keep"} if plan.matched == "keep" else {"delete_column": "gone"}
    return options


async def planned_files(job: WriteJob, plan: WriterPlan, *, by_year: bool) -> list[list[PlannedFile]]:
    """Those of each task: a planned file goes to the first that has rows for it, and none in its partition yet."""
    batches = Counter(partition_of(month, by_year=by_year) for task in plan.tasks for month in task.months)
    incoming = tuple(IncomingRows(partition, ROWS * count) for partition, count in sorted(batches.items()))
    found: list[dict[str, PlannedFile]] = [{} for _ in plan.tasks]
    for file in (await job.size(WorkloadProfile(incoming=incoming))).files:
        for task, files in zip(plan.tasks, found, strict=True):
            has_rows = any(partition_of(month, by_year=by_year) == file.partition for month in task.months)
            if has_rows and file.partition not in files:
                files[file.partition] = file
                break
    return [list(files.values()) for files in found]
