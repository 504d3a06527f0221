"""The damage matrix: metadata objects of every kind, damaged in every way, alone and in pairs, and then used.

Tickets and reports on their way are in ``tests/engine/tasks/test_in_flight.py``.
"""

import io
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from tallymark.backends.errors import BackendError, TallymarkError
from tallymark.engine.inspection.snapshot import Snapshot
from tallymark.engine.settings import MarkerKind, MarkerSettings
from tallymark.engine.timeline import log
from tallymark.engine.timeline.lease import heartbeat_path
from tests.engine.jobs.deaths import copied
from tests.engine.jobs.scene import FAMILIES_BY_COST, Store, begin, committed, die, mark, name_of, table, write_rows
from tests.support.examples import examples
from tests.support.faulty import FaultyBackend, lost_request
from tests.support.parquet import read_bytes

KINDS = {
    "properties": r"\.hoodie/hoodie\.properties",
    "log entry": r"\.hoodie/\.tallymark/log/.*",
    "body": r"\.hoodie/\.tallymark/body/.*",
    "checkpoint": r"\.hoodie/\.tallymark/checkpoint/.*",
    "reservation": r"\.hoodie/\.tallymark/open/.*",
    "heartbeat": r"\.hoodie/\.tallymark/beat/.*",
    "seal": r"\.hoodie/\.tallymark/seal/.*",
    "fence list": r"\.hoodie/\.tallymark/fence/.*",
    "reader lease": r"\.hoodie/\.tallymark/read/.*",
    "marker type": r"\.hoodie/\.temp/\d+/MARKERS\.type",
    "marker segment": r"\.hoodie/\.temp/\d+/MARKERS\d+",
    "marker claim": r"\.hoodie/\.temp/\d+/SERVER\d+",
    "direct marker": r"\.hoodie/\.temp/\d+/.*\.marker\..*",
    "Hudi instant": r"\.hoodie/\d{17}\..*",
    "partition metadata": r".*/\.hoodie_partition_metadata",
    "other": r"\.hoodie/.*",
}
ONLY_WITHOUT_STAGING = {"fence list"}
OBJECTS_MAX = 4
"""Of one kind: the first, some between, and the last."""


def flipped(data: bytes, percent: int) -> bytes:
    at, bit = divmod(len(data) * 8 * percent // 100, 8)
    return data[:at] + bytes(byte ^ 1 << bit for byte in data[at : at + 1]) + data[at + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "deleted": lambda _: None,
    "emptied": lambda _: b"",
    "halved": lambda data: data[: len(data) // 2],
    "one byte short": lambda data: data[:-1],
    **{f"a bit of {place} % flipped": partial(flipped, percent=place) for place in (0, 3, 31, 62, 99)},
    "random": lambda data: Random(7).randbytes(len(data) or 9),
}

SILENT = {
    ("marker segment", "deleted"): "of one of several; numbers have gaps, and a count would cost a request per flush",
    ("direct marker", "deleted"): "of one of several; each is the only object of its task that states it",
}
"""Damages that may be noticed by nothing, with the reason. S1 excludes them: an object whose put has returned stays."""

REMEDY = re.compile("restore|delete|install|write (it|to)|roll|run ")


def kind_of(path: str) -> str:
    return next((kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, path)), "data")


def rows_of(store: Store, snapshot: Snapshot) -> list[int]:
    files = [store.objects[file.path] for file in snapshot.files]
    return sorted(row["flight"] for data in files for row in read_bytes(data).to_pylist())


@dataclass
class Scene:
    store: Store
    dead: tuple[str, ...]
    """Instants that were not committed, and never will be."""
    rows: list[int]
    """Flights that are committed."""
    kept: dict[str, bytes]
    """Files that are committed."""

    def damaged(self, *damages: tuple[str, str]) -> "Scene":
        """A copy in which these objects are damaged; each keeps its time."""
        twin = Scene(copied(self.store), self.dead, self.rows, self.kept)
        for path, how in damages:
            data, modified = twin.store.backend._objects.pop(path)
            new = DAMAGES[how](data)
            if new is not None:
                twin.store.backend._objects[path] = (new, modified)
        return twin

    def cases(self) -> Iterator[tuple[str, str]]:
        """Some objects of each kind, with each damage that changes them."""
        of_kind = groupby(sorted(self.store.objects, key=lambda path: (kind_of(path), path)), key=kind_of)
        for paths in (list(paths) for kind, paths in of_kind if kind != "data"):
            chosen = {*(len(paths) * n // OBJECTS_MAX for n in range(OBJECTS_MAX)), len(paths) - 1}
            for path in (paths[place] for place in sorted(chosen)):
                data = self.store.objects[path]
                yield from ((path, how) for how, damage in DAMAGES.items() if damage(data) != data)

    def kind_of(self, path: str) -> str:
        is_newest = path == max(path for path in self.store.objects if kind_of(path) == "log entry")
        return "newest log entry" if is_newest else kind_of(path)


async def scene(*, has_staging: bool) -> Scene:
    """A table with everything: two checkpoints and entries beyond, three dead jobs, and a reader that died."""
    store = Store(has_staging=has_staging)
    for month in (1, 2, 3):
        await committed(store.backend, months={month: 2, 9: 1}, readers="table")
    await committed(store.backend, "overwrite", {3: 3}, partition_overwrite="dynamic")
    await table(store.backend).clean()
    await table(store.backend).checkpoint()
    for month in (4, 5):
        await committed(store.backend, months={month: 1})
    await table(store.backend).checkpoint()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "BODY_BYTES", 100)
        await committed(store.backend, months={6: 2})
    half_rolled_back = await killed(store, "batched")
    with pytest.raises(BackendError):
        await table(FaultyBackend(store.backend, lost_request("delete", "month=*"))).rollback(half_rolled_back)
    dead = (half_rolled_back, await killed(store, "batched"), await killed(store, "direct"))
    reader = FaultyBackend(store.backend)
    with suppress(BackendError):
        async with table(reader).reading():
            die(reader)
    await committed(store.backend, months={7: 1})
    store.clock.pass_lease()
    rows = rows_of(store, await table(store.backend).snapshot())
    return Scene(store, dead, rows, {path: store.objects[path] for path in store.committed_files})


async def killed(store: Store, kind: MarkerKind) -> str:
    """A job that died with three segments or direct markers, two of its three files published."""
    storage = FaultyBackend(store.backend)
    async with begin(storage, markers=MarkerSettings(kind=kind)) as job:
        await write_rows(job, storage, {1: 1})
        await write_rows(job, storage, {8: 1}, task=1)
        await mark(job, storage, [f"month=8/{name_of(job, task=2)}"])
        await storage.put(heartbeat_path(job.instant), b"")
        die(storage)
    return str(job.instant)


async def use(damaged: Scene) -> tuple[str, list[str]]:
    """Do with the table what a user does. Return "well", "error", or what is wrong; and the errors."""
    store, rows, errors = damaged.store, damaged.rows, list[str]()

    async def tried(call: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await call()
        except TallymarkError as error:
            errors.append(f"{type(error).__name__}: {error}")

    async def read() -> list[int]:
        return rows_of(store, await table(store.backend).snapshot())

    before = await tried(read)
    if await tried(lambda: committed(store.backend, months={5: 1})):
        rows = sorted([*rows, 5000])
    await tried(table(store.backend).rollback)
    store.clock.now += 24 * 3600
    await tried(table(store.backend).clean)
    after = await tried(read)
    if before not in (None, damaged.rows) or after not in (None, rows):
        return f"rows {before} and {after} are read instead of {rows}", errors
    if lost := [path for path, data in damaged.kept.items() if store.objects.get(path) != data]:
        return f"committed files are lost: {lost}", errors
    dead = [path for path in store.data_files for instant in damaged.dead if path.endswith(f"_{instant}.parquet")]
    left = [path for path in dead if pq.read_metadata(io.BytesIO(store.objects[path])).num_rows]
    if left and not errors:
        return f"files of dead jobs are left: {left}", errors
    return "error" if errors else "well", errors


def judge(damages: list[tuple[str, str]], verdict: str, errors: list[str]) -> str | None:
    """What is wrong with this outcome of these damages."""
    names = [path for path, _ in damages] + ["/log ends at position"]
    unclear = [error for error in errors if not (any(name in error for name in names) and REMEDY.search(error))]
    if verdict not in ("well", "error"):
        return f"{damages}: {verdict} {errors}"
    return f"{damages}: unclear {unclear}" if unclear else None


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.parametrize(
    "has_staging",
    [pytest.param(False, id="no_staging"), pytest.param(True, id="staging", marks=pytest.mark.release)],
)
async def test_one_damage_is_healed_or_harmless_or_a_clear_error(has_staging: bool) -> None:
    whole = await scene(has_staging=has_staging)
    assert await use(whole.damaged()) == ("well", [])
    seen, wrong, silent = Counter[tuple[str, str]](), [], set()
    for path, how in whole.cases():
        verdict, errors = await use(whole.damaged((path, how)))
        kind = whole.kind_of(path)
        seen[kind, verdict] += 1
        if found := judge([(path, how)], verdict, errors):
            silent.add((kind, how))
            wrong += [found] * ((kind, how) not in SILENT)
    print(*sorted(seen.items()), sep="\n")
    rare = {"other"} | (ONLY_WITHOUT_STAGING if has_staging else set())
    assert {kind for kind, _ in seen} - rare == {*KINDS, "newest log entry"} - rare
    assert wrong == []
    assert silent == SILENT.keys(), "a damage that is noticed by now has no place in the list"


@pytest.mark.no_cover
@pytest.mark.parametrize("has_staging", FAMILIES_BY_COST)
async def test_so_are_two_damages(has_staging: bool) -> None:
    whole = await scene(has_staging=has_staging)
    silent = SILENT.keys() | {("newest log entry", "deleted")}  # the other damage may take the evidence of it
    cases = [(path, how) for path, how in whole.cases() if (whole.kind_of(path), how) not in silent]
    random = Random(29)
    wrong = []
    for _ in range(examples(400)):
        (one, how), (other, and_how) = random.sample(cases, 2)
        if one != other:
            pair = [(one, how), (other, and_how)]
            wrong.append(judge(pair, *await use(whole.damaged(*pair))))
    assert [each for each in wrong if each] == []
