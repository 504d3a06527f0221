"""Writes of all modes, one after the other, two at once and dying on the way, against a model: the rows as a list.

Files are tiny, so that partitions have several of them and inserts are divided. Appends may double keys.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import anyio
import duckdb
import pyarrow as pa
import pytest
from hudi import HudiTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallymark.backends import Backend
from tallymark.backends.errors import BackendError
from tallymark.backends.local import LocalBackend
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import ConflictError, InvalidRequest
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.sizing.profile import IncomingRows, WorkloadProfile
from tallymark.engine.sizing.tasks import tasks_of
from tallymark.engine.tasks.task_writer import write_task
from tests.engine.jobs.scene import die
from tests.engine.upsert.scene import KEYED, PEOPLE, Changing, changing, in_thread, people, rows_of, table_at
from tests.support.examples import examples
from tests.support.faulty import FaultyBackend

IDS = range(8)
LANDS = ("A", "B")
SIZING = SizingSettings(max_file_bytes=3000, small_file_bytes=2400)

_NO_PLAN: tuple[tuple[PlannedFile, ...], ...] = ((),)

Row = dict[str, Any]


@dataclass(frozen=True)
class Write:
    mode: str
    rows: tuple[tuple[int, str, int | None, int], ...]
    """Id, land, order and version of each; rows that are equal in all of these are equal."""
    flags: tuple[bool, ...] = ()
    keep: bool = False
    land: str | None = None
    """The partition that an overwrite replaces, or in which a delete by predicate finds rows; None for all."""
    is_sized: bool = False
    """Of an append, whether it fills small files."""
    task_bytes: int = 1
    key_tasks: int = 1

    @property
    def where(self) -> str:
        """The predicate of the mode ``where``: the ids of the rows."""
        ids = ", ".join(str(id_) for id_, *_ in self.rows)
        return f"id IN ({ids})" + ("" if self.land is None else f" AND NOT land <> '{self.land}'")

    @property
    def is_keyed(self) -> bool:
        return self.mode in ("upsert", "delete")

    def batch(self) -> list[Row]:
        return [
            {"id": id_, "land": land, "at": at, "name": _text(id_, land, at, version)}
            for id_, land, at, version in self.rows
        ]


@dataclass(frozen=True)
class Race:
    """A write by key that pauses before this step, while the other is committed."""

    slow: Write
    quick: Write
    pause: int


@dataclass(frozen=True)
class Crash:
    """A write by key whose driver dies before this step."""

    write: Write
    pause: int


def _text(*values: object) -> str:
    """Return a text that no codec makes much smaller."""
    return hashlib.shake_128(repr(values).encode()).hexdigest(300)


class Model:
    """Rows of the table. Where a doubled key is to be healed, the table decides which of them is the stored one."""

    def __init__(self, unique_in: str) -> None:
        self._columns = ("id",) if unique_in == "table" else ("id", "land")
        self.rows: list[Row] = []

    def key(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._columns)

    def outcomes(self, write: Write) -> list[list[Row]]:
        """Return what the rows may be after the write; none where it has to be refused."""
        batch = write.batch()
        if write.mode == "append":
            return [self.rows + batch]
        if write.mode == "where":
            ids = {row["id"] for row in batch}
            return [[row for row in self.rows if row["id"] not in ids or write.land not in (None, row["land"])]]
        if write.mode == "overwrite":
            return [[row for row in self.rows if write.land not in (None, row["land"])] + batch]
        flags = write.flags or (False,) * len(batch)
        found: list[list[Row]] = [[]]
        keys = dict.fromkeys(map(self.key, [*self.rows, *batch]))
        for key in keys:
            stored = [row for row in self.rows if self.key(row) == key]
            mine = [(row, flag) for row, flag in zip(batch, flags, strict=True) if self.key(row) == key]
            found = [[*rows, *more] for rows in found for more in self._of_key(write, stored, mine)]
        return found

    def _of_key(self, write: Write, stored: list[Row], mine: list[tuple[Row, bool]]) -> list[list[Row]]:
        if not mine or (write.keep and stored):
            return [stored]
        if write.mode == "delete":
            return [[]]
        greatest = max(_order(row) for row, _ in mine)
        winner, is_delete = _first(mine, greatest)
        if any(_differ(winner, is_delete, *other) for other in mine if _order(other[0]) == greatest):
            return [[one] for one in stored if _order(one) > greatest]  # none of them wins in any case
        made = [] if is_delete else [winner]
        return [[one] if _order(one) > greatest else made for one in stored] or [made]

    def may_be_refused(self, write: Write) -> bool:
        """Return whether two rows of one key and order differ."""
        if write.mode != "upsert":
            return False
        flags = write.flags or (False,) * len(write.rows)
        rows = list(zip(write.batch(), flags, strict=True))
        return any(
            self.key(one[0]) == self.key(other[0]) and _order(one[0]) == _order(other[0]) and _differ(*one, *other)
            for one in rows
            for other in rows
        )


def _order(row: Row) -> int:
    return -1 if row["at"] is None else row["at"]


def _first(rows: list[tuple[Row, bool]], order: int) -> tuple[Row, bool]:
    return next(each for each in rows if _order(each[0]) == order)


def _differ(one: Row, is_delete: bool, other: Row, is_other_delete: bool) -> bool:
    return is_delete != is_other_delete or (not is_delete and one != other)


def _counted(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows)


class Scene:
    def __init__(self, unique_in: str, readers: str, path: Path | None = None) -> None:
        """The table is in memory, or at a path."""
        self.backend: Backend = MemoryBackend(has_staging=readers == "table") if path is None else LocalBackend(path)
        self.path = path
        self.table = table_at(self.backend)
        self.unique_in = unique_in
        self.readers = readers
        self.model = Model(unique_in)

    async def create(self) -> None:
        key = {**KEYED, "unique_in": self.unique_in, "readers": self.readers}
        async with changing(self.backend, sizing=SIZING, **key) as job:
            await self._commit(job, FIRST)
        await self._became(FIRST)

    async def run(self, step: Any) -> None:
        if step == "clean":
            await self.table.clean(retain_hours=0 if self.readers == "table" else None)
        elif step == "checkpoint":
            await self.table.checkpoint()
        elif isinstance(step, Race):
            await self._race(step)
        elif isinstance(step, Crash):
            await self._crash(step)
        else:
            await self._write(step)
        await self._compare()

    async def _compare(self) -> None:
        rows = _counted(await rows_of(self.backend))
        assert rows == _counted(self.model.rows)
        if self.path is not None:
            by_hudi: list[Any] = HudiTable("file://" + quote(str(self.path))).read()
            found = [row for batch in by_hudi for row in batch.select(PEOPLE.names).to_pylist()]
            assert _counted(found) == rows, "hudi-rs"
            if files := [f"{self.path}/{file.path}" for file in (await self.table.snapshot()).files]:
                with duckdb.connect() as connection:
                    by_duckdb = connection.execute(
                        'SELECT id, land, "at", name FROM read_parquet($1)', [files]
                    ).fetchall()
                assert Counter(by_duckdb) == rows, "DuckDB"

    async def _became(self, write: Write) -> None:
        """Check that the table is what the write made of the model's rows, and let these be so."""
        found = await rows_of(self.backend)
        outcomes = self.model.outcomes(write)
        assert _counted(found) in list(map(_counted, outcomes))
        self.model.rows = found

    def _job(self, write: Write) -> Any:
        named: dict[str, Any] = {"when_matched": "keep"} if write.keep else {}
        if write.mode == "overwrite" and write.land is not None:
            named["partition"] = {"land": write.land}
        if write.is_keyed or write.is_sized:
            named["sizing"] = SIZING
        return changing(self.backend, write.mode, **named)

    async def _write(self, write: Write) -> None:
        if write.mode == "where":
            await self.table.delete(write.where)
            await self._became(write)
            return
        try:
            async with self._job(write) as job:
                await self._commit(job, write)
        except InvalidRequest:
            assert self.model.may_be_refused(write)
        else:
            await self._became(write)

    async def _commit(self, job: Any, write: Write) -> None:
        if write.is_keyed:
            for step in _steps(self._changing(job, write), write):
                await step()
            return
        rows, tasks = people(*write.batch()), _NO_PLAN
        if write.is_sized:
            counts = Counter(row["land"] for row in write.batch())
            incoming = tuple(IncomingRows(f"land={land}", count, 700 * count) for land, count in counts.items())
            plan = await job.size(WorkloadProfile(incoming=incoming))
            tasks = tasks_of(plan, task_bytes=write.task_bytes) or _NO_PLAN
        reports = []
        for number, planned in enumerate(tasks):
            part = rows.take(pa.array(range(number, rows.num_rows, len(tasks)), pa.int64()))
            backend = self.backend
            reports.append(await in_thread(write_task, job.ticket, part, task=number, planned=planned, backend=backend))
        await job.commit(reports)

    def _changing(self, job: Any, write: Write, backend: Backend | None = None) -> Changing:
        delete: Any = True if write.mode == "delete" else pa.array(write.flags, pa.bool_()) if write.flags else False
        rows, task_bytes = people(*write.batch()), write.task_bytes
        return Changing(job, backend or self.backend, rows, delete=delete, keep=write.keep, task_bytes=task_bytes)

    async def _crash(self, crash: Crash) -> None:
        dying = FaultyBackend(self.backend)
        try:
            async with changing(dying, crash.write.mode, sizing=SIZING) as job:
                for step in _steps(self._changing(job, crash.write, dying), crash.write)[: crash.pause]:
                    await step()
                die(dying)
        except InvalidRequest:
            assert self.model.may_be_refused(crash.write)
        except BackendError:
            await self.table.rollback(job.instant)

    async def _race(self, race: Race) -> None:
        async with self._job(race.slow) as job:
            steps = _steps(self._changing(job, race.slow), race.slow)
            try:
                for step in steps[: race.pause]:
                    await step()
                await self._write(race.quick)
                for step in steps[race.pause :]:
                    await step()
            except InvalidRequest:
                assert self.model.may_be_refused(race.slow)
            except ConflictError:
                mine, theirs = ({row["id"] for row in each.batch()} for each in (race.slow, race.quick))
                assert mine & theirs or race.quick.mode != "append" or race.quick.is_sized
            else:
                await self._became(race.slow)


FIRST = Write(mode="upsert", rows=tuple((id_, LANDS[id_ % 2], 2, 0) for id_ in IDS if id_ != IDS[-1]))


def _steps(change: Changing, write: Write) -> list[Any]:
    reports: list[Any] = []

    async def look_up() -> None:
        await change.look_up(write.key_tasks)

    async def run_tasks() -> None:
        reports.extend(await change.write())

    async def commit() -> None:
        await change.job.commit(reports)

    return [look_up, change.plan, run_tasks, commit]


def _rows(ids: Sequence[int], max_size: int = 8) -> Any:
    orders = st.sampled_from([0, 1, 2, 3, 4, 5, None])
    row = st.tuples(st.sampled_from(ids), st.sampled_from(LANDS), orders, st.sampled_from([0, 0, 0, 0, 1]))
    return st.lists(row, min_size=1, max_size=max_size).map(tuple)


MANY, FEW = _rows(IDS), _rows(IDS[-3:], 2)
TASK_BYTES = st.sampled_from([1, 1 << 20])


@st.composite
def _writes(
    draw: Any,
    modes: Sequence[str] = ("append", "upsert", "upsert", "upsert", "delete", "where", "overwrite"),
    rows: Any = MANY,
) -> Write:
    mode, rows = draw(st.sampled_from(modes)), draw(rows)
    land = draw(st.sampled_from([None, *LANDS])) if mode in ("overwrite", "where") else None
    if mode == "overwrite" and land is not None:
        rows = tuple((id_, land, at, version) for id_, _, at, version in rows)
    flags: tuple[bool, ...] = ()
    if mode == "upsert" and draw(st.booleans()):
        flags = tuple(draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    return Write(
        mode=mode,
        rows=rows,
        flags=flags,
        keep=mode == "upsert" and draw(st.sampled_from([False, False, False, True])),
        land=land,
        is_sized=mode == "append" and draw(st.booleans()),
        task_bytes=draw(TASK_BYTES),
        key_tasks=draw(st.integers(1, 2)),
    )


RACES = st.one_of(
    st.builds(Race, _writes(("upsert", "upsert", "delete")), _writes(), st.integers(0, 3)),
    st.builds(Race, _writes(("upsert", "upsert", "delete"), FEW), _writes(rows=FEW), st.integers(1, 3)),
)
CRASHES = st.builds(Crash, _writes(("upsert", "upsert", "delete")), st.integers(0, 3))
STEP = st.one_of(_writes(), RACES, RACES, CRASHES, st.sampled_from(["clean", "checkpoint"]))


def steps(least: int, most: int) -> Any:
    return st.lists(STEP, min_size=least, max_size=most)


async def play(scene: Scene, steps: Sequence[Any]) -> None:
    await scene.create()
    for step in steps:
        await scene.run(step)


@pytest.mark.no_cover
@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(["partition", "table"]), st.sampled_from(["table", "directory"]), steps(0, 8))
def test_the_table_has_the_rows_of_the_model_after_each_step(unique_in, readers, steps):
    anyio.run(play, Scene(unique_in, readers), steps)


@pytest.mark.release
def test_ten_thousand_steps_are_read_right_by_readers_of_others(tmp_path):
    seen = 0

    @settings(max_examples=1300, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(["partition", "table"]), st.sampled_from(["table", "directory"]), steps(8, 8))
    def check(unique_in, readers, steps):
        nonlocal seen
        with TemporaryDirectory(dir=tmp_path) as path:
            anyio.run(play, Scene(unique_in, readers, Path(path) / "table"), steps)
        seen += len(steps)

    check()
    assert seen >= 10_000
