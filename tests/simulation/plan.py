"""What happens in a run, drawn from its seed: writers, mishaps and the fault profile.

A plan is a value. The same plan under the same seed is the same run, to the byte; a smaller plan of a failing run is a
smaller failing run (``shrink``).
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tallymark.engine.settings import MarkerKind
from tests.simulation.fault_profile import FIRST_SEGMENT, FaultProfile, draw_fault_profile, with_repeats

STEPS_MAX = 4000
"""Steps of a process before which a mishap may happen to it: a driver with two tasks takes about half as many."""


YEARS = {1: 2013, 2: 2013, 3: 20130}
"""The year of each month, where tables have years: two share one, whose path is the beginning of the other's."""

LANDMARKS = (
    ("put", "/open/"),
    ("put", FIRST_SEGMENT),
    ("put", FIRST_SEGMENT),
    ("put", "/seal/"),
    ("put", "/fence/"),
    ("put", "/log/"),
    ("put", ".inflight"),
    ("delete data", ""),
    ("delete data", ""),
    ("delete", "/.temp/"),
    ("list", "/.temp/"),
)
"""Requests that mark the progress of a writer, or of its rollback: a verb, and a part of the path."""

RESCUE_LANDMARKS = (
    ("put", "/log/"),
    ("list", "/.temp/"),
    ("put", "/fence/"),
    ("delete data", ""),
    ("delete", "/.temp/"),
)
TASK_LANDMARKS = (("put", ".marker."), ("data", ".parquet"))

STEPS_AFTER_MAX = 20
"""Steps from a landmark to the mishap of the process: each stage of a commit takes a few."""


EntryFate = Literal["slow", "lost request", "lost answer", "late landing", "hanging"]
"""Of the put of an entry of the log. One that hangs lands, and its answer takes longer than a commit waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """Mishap of a process, after its tasks have taken that many steps."""

    what: Literal["killed", "stopped", "cancelled", "clock jumps"]
    at_step: int
    after: tuple[str, str] | None = None
    """Steps are counted from its first request of this verb whose path holds this; else from its beginning."""
    for_s: float = 0.0
    """How long it is stopped, or how far its clock jumps."""
    dies_after_steps: int = 0
    """It is killed this many steps after it continued; 0: not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptPlan:
    """One attempt of one task."""

    host: str
    start_s: float
    """After its job has started; a later one is a speculative twin."""
    row_s: float
    """Between two batches of its input."""
    mishap: Mishap | None = None
    raises: bool = False
    """Its input fails half way."""
    dies_after: bool = False
    """Its process is killed right after its success."""
    astray: int | None = None
    """A partition that only this attempt writes to: what it reads depends on when it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    months: tuple[int, ...]
    """The partitions of its batches, one after the other."""
    attempts: tuple[AttemptPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterPlan:
    host: str
    start_s: float
    clock_s: float
    """How far its clock is off."""
    mode: Literal["append", "overwrite", "upsert", "delete"]
    dynamic: bool
    kind: MarkerKind
    tasks: tuple[TaskPlan, ...]
    mishap: Mishap | None = None
    raises: bool = False
    """Its block raises before it commits."""
    queue_limit: int = 100_000
    """Of its service; 1 refuses requests while another marker is in flight."""
    patience_s: float = math.inf
    """After that the engine gives up on tasks, and the job is rolled back. Tasks go on."""
    commits_again: bool = False
    """A commit that failed for want of an answer is called again, with the same reports."""
    month: int | None = None
    """It names this partition: an overwrite replaces it, dynamic or not, and nothing beside it."""
    year: int | None = None
    """It names this year, where the table has years: an overwrite replaces what lies there, or if it is dynamic those
    months of it that it has rows for."""
    read_before_s: float | None = None
    """Its base is what it read this long before it started to write; None: what is there when it starts."""
    fill_bytes: int = 0
    """Its appends fill small files, and make files of so many bytes; 0: sizing is off."""
    loses_rewrite_answer: bool = False
    """The put of the first lost fill that it rewrites is not answered."""
    respects_claims: bool = True
    """It does not fill the small files that others are filling."""
    beats_lost_after_s: float = 0.0
    """From then on none of its heartbeats reaches storage, while its other requests do; 0: all do."""
    reserves_late_s: float = 0.0
    """So long its first reservation is on its way: others may have had its instant, and finished, before it lands."""
    txn: str | None = None
    """Writers that share it do the same, and only one of them is to commit."""
    matched: Literal["update", "delete some", "keep"] = "update"
    """What an upsert does where a key is there: some of its rows may delete, or it leaves out the rows."""
    is_shared: bool = False
    """Its tasks use the services of the plan, and not one in the driver."""
    drifts: bool = False
    """The input of a write by key has one row more when it is computed again for the tasks."""

    entry_fates: tuple[EntryFate, ...] = ()
    """What becomes of the first entries that its process puts."""
    driver: int = 0
    """Writers of one number, but for 0, are jobs of one process and use one ``Table``. Its host and mishap are those of
    the first one.
    """

    @property
    def is_keyed(self) -> bool:
        return self.mode in ("upsert", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitorPlan:
    """A process that does one thing with the table repeatedly."""

    host: str
    what: Literal["read", "clean", "roll back the dead", "roll back one", "read under a lease", "clean at once"]
    at_s: tuple[float, ...]
    mishap: Mishap | None = None
    is_at_entry: bool = False
    """It starts when the first writer puts its first entry, or has ended."""
    back: int | None = None
    """Under a lease: so many positions behind the head; None: at the head, whatever that is."""
    hold_s: float = 0.0
    """Under a lease: how long it takes to read all files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewQueryPlan:
    """One query of all partitions, one after the other. Those of a viewer may overlap."""

    at_s: float
    """After it has started."""
    syncs: bool
    """It reads the log first. Otherwise it queries what is known."""
    of: Literal["head", "start", "back"]
    """The position: the view's head, that at which its keeper began, or one before the head."""
    pause_s: float = 0.0
    """Between two partitions."""
    is_leased: bool = False
    """Under a lease on its position, where the table keeps what is replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerPlan:
    """A process that keeps a view of the table, and queries it at intervals."""

    host: str
    start_s: float
    queries: tuple[ViewQueryPlan, ...]
    mishap: Mishap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementPlan:
    """The table is removed, so that the next writer makes it again; or put back to an older copy of all of storage."""

    at_s: float
    copied_at_s: float | None = None
    """When the copy is made, or soon after, when no job is open; None: it is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagePlan:
    """Somebody else, or the disk, changes the markers of the first job that has some."""

    at_s: float
    what: Literal["foreign names", "emptied", "cut", "lost"]
    """Markers and a list of fences that name what is not the job's; or what becomes of its segments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLife:
    """One process of a service."""

    mishap: Mishap
    """It ends with this: is killed, or continues after a while and is killed then."""
    pause_s: float
    """Until the next one starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """A service outside of the drivers. After these lives it has one that nothing happens to."""

    host: str
    lives: tuple[ServiceLife, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPlan:
    months: tuple[int, ...]
    """The partition of each append, whose number is its place here."""
    pause_s: float
    """Between two appends."""
    window: int = 1
    """Appends that wait at once."""
    is_numbered: bool = True
    """It gives its name and the number, and repeats what was not acknowledged. Otherwise it repeats nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    host: str
    start_s: float
    producers: tuple[ProducerPlan, ...]
    interval_s: float = 0.0
    worker_count: int = 3
    entry_fates: tuple[EntryFate, ...] = ()
    """What becomes of the first entries that its first driver puts."""
    mishaps: tuple[Mishap, ...] = ()
    """Of its drivers, one after the other. After them it has one that nothing happens to."""
    pause_s: float = 0.0
    """From the end of a driver until the next one continues."""
    patience_s: float = 60.0
    """So long a driver may take before the next one continues, as if it were dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    seed: int
    has_staging: bool
    faults: FaultProfile
    writers: tuple[WriterPlan, ...]
    visitors: tuple[VisitorPlan, ...]
    rescuer_host: str
    """Host of the process that recovers the table at the end."""
    has_past: bool = False
    """Another writer has written to each partition before."""
    body_bytes: int = 1 << 20
    """Entries of the log that are larger are put as bodies of their own."""
    retain_hours: float | None = None
    """How long the table keeps replaced files; None: not at all."""
    by_year: bool = False
    """The table is partitioned by year and month."""
    viewers: tuple[ViewerPlan, ...] = ()
    """Processes that keep a view of the table (``variations``)."""
    checkpoint_entries: int = 64
    """Entries of the log after which a writer leaves a checkpoint; 64 never come."""
    kept_entries: int = 64
    """Newest entries of the log, and commits of the Hudi timeline, that are not archived."""
    replacement: ReplacementPlan | None = None
    damage: DamagePlan | None = None
    unique_in: Literal["partition", "table"] | None = None
    """The table has a record key, which occurs once there; None: it has none."""
    services: tuple[ServicePlan, ...] = ()
    """Services outside of the drivers."""
    streams: tuple[StreamPlan, ...] = ()


def draw(seed: int) -> Plan:
    chance = random.Random(f"{seed}/plan")
    troubles = chance.choice((0, 1, 1, 2, 2, 3, 5))
    """How many kinds of trouble a run has at most: few at a time find more than all at once."""
    kinds = set(chance.sample(("storage", "network", "killed", "stopped", "cancelled", "tasks", "clock"), troubles))
    writers = tuple(_writer(chance, kinds) for _ in range(chance.choice((1, 1, 2, 2, 3))))
    visitors = tuple(_visitor(chance, kinds) for _ in range(chance.choice((0, 1, 2, 2))))
    late = random.Random(f"{seed}/late askers")
    plan = Plan(
        seed=seed,
        has_staging=chance.random() < 0.4,
        faults=with_repeats(draw_fault_profile(chance, kinds), seed),
        writers=tuple(_with_late_requester(late, writer) for writer in writers),
        visitors=visitors,
        rescuer_host=draw_host(chance),
        has_past=chance.random() < 0.6,
        body_bytes=chance.choice((1 << 20, 1 << 20, 1 << 20, 200)),
    )
    plan = _with_years(random.Random(f"{seed}/years"), plan)
    plan = _with_nightly_jobs(random.Random(f"{seed}/nights"), kinds, plan)
    return _with_late_reservation(seed, plan)


def _with_late_reservation(seed: int, plan: Plan) -> Plan:
    """Let the reservation of the last of two writers that start at one moment land late, in half of such plans."""
    chance = random.Random(f"{seed}/late reservation")
    starts = [(writer.start_s, writer.clock_s) for writer in plan.writers]
    if len(set(starts)) == len(starts) or chance.random() < 1 / 2:
        return plan
    last = max(at for at, start in enumerate(starts) if starts.count(start) > 1)
    writer = replace(plan.writers[last], reserves_late_s=chance.choice((0.1, 0.5, 3.0, 30.0)))
    return replace(plan, writers=(*plan.writers[:last], writer, *plan.writers[last + 1 :]))


def _with_years(chance: random.Random, plan: Plan) -> Plan:
    """Let half of the tables have years, and most writers there name the same one."""
    if chance.random() >= 1 / 2:
        return plan
    year = chance.choice((2013, 2013, 20130))
    writers = [_in_one_year(writer, year) if chance.random() < 3 / 4 else writer for writer in plan.writers]
    if chance.random() < 1 / 3:
        writers[0], rival = _rivals(chance, writers[0])
        writers.append(rival)
    return replace(plan, by_year=True, writers=tuple(writers))


def _rivals(chance: random.Random, writer: WriterPlan) -> tuple[WriterPlan, WriterPlan]:
    """Return two writers that start at once: one overwrites a year, the other the months that it has rows for."""
    whole = _in_one_year(replace(writer, mode="overwrite", dynamic=False), 2013)
    return whole, replace(whole, dynamic=True, host=draw_host(chance), mishap=None, raises=False)


def _in_one_year(writer: WriterPlan, year: int) -> WriterPlan:
    """Its rows go to the months of that year, as far as they have to."""
    months = [month for month in YEARS if YEARS[month] == year]
    return replace(writer, year=year, tasks=_moved(writer.tasks, lambda month: month if month in months else months[0]))


def _with_nightly_jobs(chance: random.Random, kinds: set[str], plan: Plan) -> Plan:
    """Let some writers do as nightly jobs: replace a named partition, go by what they read before, be run again."""
    writers = [_nightly(chance, writer) for writer in plan.writers]
    if chance.random() < 1 / 4:
        number = chance.randrange(len(writers))
        writers[number] = first = replace(writers[number], txn="night:1")
        writers.append(_rerun(chance, kinds, first))
    retain_hours = chance.choice((0.0, 0.01, 0.05, 1.0)) if chance.random() < 1 / 4 else None
    return replace(plan, writers=tuple(writers), retain_hours=retain_hours)


def _nightly(chance: random.Random, writer: WriterPlan) -> WriterPlan:
    if chance.random() < 1 / 4:
        writer = _in_one_month(writer, chance.choice((1, 2, 3)))
    if writer.mode == "overwrite" and chance.random() < 1 / 2:
        writer = replace(writer, read_before_s=chance.choice((0.0, 0.01, 1.0, 30.0)))
    return writer


def _in_one_month(writer: WriterPlan, month: int) -> WriterPlan:
    return replace(writer, month=month, year=None, tasks=_moved(writer.tasks, lambda _: month))


def _moved(tasks: tuple[TaskPlan, ...], to: Callable[[int], int]) -> tuple[TaskPlan, ...]:
    """All rows of each month to another; none go astray."""
    return tuple(
        replace(
            task,
            months=tuple(map(to, task.months)),
            attempts=tuple(replace(attempt, astray=None) for attempt in task.attempts),
        )
        for task in tasks
    )


def _rerun(chance: random.Random, kinds: set[str], first: WriterPlan) -> WriterPlan:
    """The same once more: at once, as a twin, or when the first has long come to its end."""
    return replace(
        first,
        host=draw_host(chance),
        start_s=first.start_s + chance.choice((0.0, 0.0, 0.01, 1.0, 100.0, 300.0)),
        mishap=draw_mishap(chance, kinds, probability=0.5, steps=STEPS_MAX, landmarks=LANDMARKS),
        raises=False,
    )


def _writer(chance: random.Random, kinds: set[str]) -> WriterPlan:
    mode: Literal["append", "overwrite"] = chance.choice(("append", "overwrite"))
    landmarks = LANDMARKS + (("delete data", ""),) * (4 if mode == "overwrite" else 0)
    return WriterPlan(
        host=draw_host(chance),
        start_s=chance.choice((0.0, 0.0, 0.0, 0.01, 0.5, 30.0, 150.0)),
        clock_s=chance.choice((-5.0, 5.0, -0.001)) if "clock" in kinds else 0.0,
        mode=mode,
        dynamic=chance.random() < 0.5,
        kind=chance.choice(("batched", "batched", "direct")),
        tasks=tuple(_task(chance, kinds) for _ in range(chance.choice((0, 1, 2, 2)))),
        mishap=draw_mishap(chance, kinds, probability=0.85, steps=STEPS_MAX, landmarks=landmarks),
        raises=chance.random() < 0.1,
        patience_s=chance.choice((0.1, 3.0)) if "tasks" in kinds and chance.random() < 0.3 else math.inf,
        queue_limit=chance.choice((1, 100_000, 100_000)) if "tasks" in kinds else 100_000,
        commits_again=chance.random() < 0.5,
    )


def _with_late_requester(chance: random.Random, writer: WriterPlan) -> WriterPlan:
    """Let a task of a writer that pauses for long request its first marker shortly before the writer continues.

    That request waits for the writer, and is answered before the writer can have learnt the outcome of its instant.
    """
    if writer.mishap is None or writer.mishap.what != "stopped" or not writer.tasks or chance.random() < 0.5:
        return writer
    task = writer.tasks[0]
    first, *others = task.attempts
    late = replace(first, start_s=max(first.start_s, writer.mishap.for_s - 15.0 * chance.random()))
    return replace(writer, tasks=(replace(task, attempts=(late, *others)), *writer.tasks[1:]))


def _task(chance: random.Random, kinds: set[str]) -> TaskPlan:
    count = chance.choice((2, 2, 3)) if "tasks" in kinds else 1
    return TaskPlan(
        months=tuple(chance.choice((1, 2, 3)) for _ in range(chance.choice((1, 2, 3)))),
        attempts=tuple(_attempt(chance, kinds, number) for number in range(count)),
    )


def _attempt(chance: random.Random, kinds: set[str], number: int) -> AttemptPlan:
    return AttemptPlan(
        host=draw_host(chance),
        start_s=number * chance.choice((0.0, 0.05, 1.0)),
        row_s=chance.choice((0.0, 0.01, 0.3)) * (1 if "tasks" not in kinds else chance.choice((0.1, 1, 10, 500))),
        mishap=draw_mishap(
            chance, kinds - {"cancelled", "clock"}, probability=0.2, steps=150, landmarks=TASK_LANDMARKS
        ),
        raises="tasks" in kinds and chance.random() < 0.3,
        dies_after="killed" in kinds and chance.random() < 0.2,
        astray=chance.choice((1, 2, 3)) if "tasks" in kinds and chance.random() < 0.7 else None,
    )


def _visitor(chance: random.Random, kinds: set[str]) -> VisitorPlan:
    return VisitorPlan(
        host=draw_host(chance),
        what=chance.choice(("read", "read", "clean", "roll back the dead", "roll back one")),
        at_s=tuple(sorted(chance.choice((0.1, 1.0, 10.0, 150.0, 400.0)) * chance.random() for _ in range(3))),
        mishap=draw_mishap(chance, kinds, probability=0.7, steps=800, landmarks=RESCUE_LANDMARKS),
    )


def draw_mishap(
    chance: random.Random, kinds: set[str], *, probability: float, steps: int, landmarks: Sequence[tuple[str, str]] = ()
) -> Mishap | None:
    possible = sorted(kinds & {"killed", "stopped", "cancelled", "clock"})
    if not possible or chance.random() >= probability:
        return None
    after = chance.choice(landmarks) if landmarks and chance.random() < 0.7 else None
    at_step = round(math.exp(chance.random() * math.log(steps if after is None else STEPS_AFTER_MAX)))
    if after is not None:
        at_step = 0 if chance.random() < 0.4 else at_step
    what: Any = chance.choice(possible)
    times_s = {"stopped": (1.0, 30.0, 70.0, 150.0, 190.0, 400.0), "clock": (-3600.0, 3600.0, 7.0)}
    for_s = chance.choice(times_s[what]) if what in times_s else 0.0
    return Mishap(what="clock jumps" if what == "clock" else what, at_step=at_step, after=after, for_s=for_s)


def draw_host(chance: random.Random) -> str:
    return chance.choice(("alpha", "alpha", "beta", "gamma"))
