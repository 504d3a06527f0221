"""Storage of either family, as the world keeps it, and the way that one process has to it.

``Objects`` is the store: whole objects, changed at one moment each. ``Port`` is a ``Backend``: every call is subject
to the fault profile, and cannot be revoked once it was sent.
"""

import io
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, BinaryIO

import outcome
import trio

from tallymark.backends.contract import Entry, NewFile, check_path, check_range
from tallymark.backends.errors import AlreadyExists, BackendError, NotFound, Unavailable
from tallymark.backends.meter import ClassStatistics, RequestStatistics
from tallymark.engine.timeline.log import LOG_FOLDER
from tallymark.engine.views.checkpoint_format import CHECKPOINT_FOLDER
from tests.history import Began, History, Landed, Removed, Replaced, Sent, Strayed
from tests.simulation.blocking import block_on
from tests.simulation.fault_profile import (
    Fate,
    FaultProfile,
    fate,
    fate_in_outage,
    fate_of_entry,
    later,
    reported_after_s,
)
from tests.simulation.kernel import Kernel
from tests.simulation.process import Process, ProcessDied
from tests.support.archived import is_archivable, whole

TWICE = ("put", "delete", "delete data")
"""What a client sends again that was not answered. A data file is never sent twice."""

EPOCH = 1_000_000.0
"""The store's clock when a run starts."""


class Objects:
    """All that is stored. Nothing here waits."""

    def __init__(self, kernel: Kernel, history: History, *, has_staging: bool) -> None:
        self.has_staging = has_staging
        self.data: dict[str, bytes] = {}
        self.mishaps: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.removal_count = 0
        self.life = 0
        """How often all of it was replaced."""
        self.outage_until = 0.0
        self.archived: dict[str, bytes] = {}
        """What an archive has deleted."""
        self.lost = ""
        """How the paths begin of what is lost, however late it lands."""
        self._modified: dict[str, float] = {}
        self._put_by: dict[str, object] = {}
        """What each object's put was, however often it was sent: the nonce that its client looks for."""
        self._staging: dict[str, object] = {}
        self.history = history
        self._kernel = kernel

    @property
    def now(self) -> float:
        """The store's own clock."""
        return EPOCH + self._kernel.now

    @property
    def whole(self) -> dict[str, bytes]:
        """All that is stored, with what was archived."""
        return whole(self.data, self.archived)

    def get(self, path: str) -> bytes:
        try:
            return self.data[path]
        except KeyError:
            raise NotFound(f"{path} does not exist") from None

    def put(self, path: str, data: bytes, by: str) -> None:
        if self.lost and path.startswith(self.lost):
            return
        self.data[path] = data
        self._modified[path] = self.now
        if "/body/" in path:  # of an entry that lost its number, and is put once more
            self.archived.pop(path, None)
        if path in self.archived:  # it counts for no reader
            self.mishaps["archived position taken again"] += "/log/" in path
            return
        self.history.record(Landed(at=self._kernel.now, path=path, data=data, by=by))

    def put_new(self, path: str, data: bytes, by: str, nonce: object = None) -> None:
        """Done, too, where an earlier copy of the same put has done it."""
        if path in self.data:
            if nonce is not None and self._put_by.get(path) is nonce:
                return
            self.mishaps["reservation taken"] += "/open/" in path
            raise AlreadyExists(f"{path} exists")
        self.put(path, data, by)
        self._put_by[path] = nonce

    def page(self, directory: str, after: str, size: int) -> list[Entry]:
        prefix = f"{directory}/" if directory else ""
        found = sorted(path for path in self.data if path > after and path.startswith(prefix))[:size]
        return [Entry(path, len(self.data[path]), self._modified[path]) for path in found]

    def replace(self, copy: Mapping[str, bytes], copied: int, at_work: frozenset[str]) -> None:
        """Hold what was copied when the history had so many events, and nothing else."""
        self.life += 1
        self.data = dict(copy)
        self.archived.clear()
        self._modified = dict.fromkeys(copy, self.now)
        self._put_by.clear()
        self._staging.clear()
        self.history.record(Replaced(at=self._kernel.now, copied=copied, at_work=at_work))

    def delete(self, paths: Sequence[str], by: str, life: int) -> None:
        """Do nothing if all was replaced since the request was sent."""
        for path in paths if life == self.life else ():
            if path in self.data:
                if is_archivable(path) and self.life == 0:
                    self.archived.setdefault(path, self.data[path])
                    self.mishaps["log entry archived"] += "/log/" in path
                del self.data[path], self._modified[path]
                self._put_by.pop(path, None)
                self.removal_count += 1
                self.history.record(Removed(at=self._kernel.now, path=path, by=by))

    def open_staging(self, directory: str) -> None:
        self._staging.setdefault(directory, object())

    def close_staging(self, directory: str) -> None:
        self._staging.pop(directory, None)

    def opening(self, directory: str) -> object:
        if not self.has_staging:
            return None
        try:
            return self._staging[directory]
        except KeyError:
            raise NotFound(f"staging directory {directory} does not exist, or was closed") from None

    def publish(self, path: str, data: bytes, staging: str, opening: object, by: str) -> None:
        if self.opening(staging) is not opening:
            raise NotFound(f"{path}: staging directory {staging} was closed and opened again")
        self.put_new(path, data, by)


class Port:
    """One process's way to storage."""

    url = "memory:"

    def __init__(self, kernel: Kernel, objects: Objects, process: Process, faults: FaultProfile) -> None:
        self.objects = objects
        self.process = process
        self.faults = faults
        self.has_staging = objects.has_staging
        self.mishap_count = 0
        self._repeat_count = 0
        self._kernel = kernel
        self._history = objects.history
        self._chance = kernel.stream(f"port of {process.name}")
        self._repeats = kernel.stream(f"repeats of {process.name}") if faults.twice else None
        self._waiting: dict[int, trio.lowlevel.Task] = {}
        """By the number of the call: a task that gave one up may wait for the next when the answer comes."""
        self._calls = count()
        self._is_closed = False

    def statistics(self) -> RequestStatistics:
        puts = ClassStatistics("put", {"unknown": self._repeat_count}, 0, 0, 0.0, 0.0, 0.0)
        return RequestStatistics((puts,), self._repeat_count)

    async def get(self, path: str) -> bytes:
        check_path(path)
        data: bytes = await self._call("get", path, lambda: self.objects.get(path))
        return data

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        check_range(start, length)
        return (await self.get(path))[start : start + length]

    async def put(self, path: str, data: bytes) -> None:
        check_path(path)
        life = self.objects.life

        def put() -> None:
            if life == self.objects.life or not path.startswith(f"{CHECKPOINT_FOLDER}/"):
                self.objects.put(path, data, self.process.name)

        await self._call("put", path, put)

    async def put_new(self, path: str, data: bytes) -> None:
        check_path(path)
        if "/MARKERS" in path:
            self._history.record(Sent(at=self._kernel.now, server=self.process.name, path=path, data=data))
        nonce, life = object(), self.objects.life

        def put() -> None:
            if life == self.objects.life or not path.startswith(".hoodie/2"):
                self.objects.put_new(path, data, self.process.name, nonce)

        await self._call("put", path, put)

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        if not directory and f"{LOG_FOLDER}/{1:020d}" in self.objects.data:
            self.objects.mishaps["table listed for an instant"] += 1
        after = ""
        removals = self.objects.removal_count
        while True:
            page = await self._page(directory, after)
            for entry in page:
                yield entry
            if len(page) < self.faults.page_size:
                return
            if removals != self.objects.removal_count:
                self.objects.mishaps["listing in pages beside deletes"] += 1
                removals = self.objects.removal_count
            after = page[-1].path

    async def _page(self, directory: str, after: str) -> Sequence[Entry]:
        size = self.faults.page_size
        page: Sequence[Entry] = await self._call("list", directory, lambda: self.objects.page(directory, after, size))
        return page

    async def delete(self, paths: Sequence[str]) -> None:
        """As listings, in several requests: it may fail, or its process may die, half way."""
        paths = [check_path(path) for path in paths]
        size = self.faults.delete_size
        verb = "delete" if paths and paths[0].startswith(".hoodie/") else "delete data"
        for start in range(0, len(paths), size):
            some = paths[start : start + size]
            try:
                await self._call(
                    verb, some[0], partial(self.objects.delete, some, self.process.name, self.objects.life)
                )
            except Unavailable:
                self.objects.mishaps["delete failed half way"] += start > 0
                raise

    async def open_staging(self, directory: str) -> None:
        if self.has_staging:
            await self._call("staging", directory, lambda: self.objects.open_staging(directory))

    async def close_staging(self, directory: str) -> None:
        if self.has_staging:
            await self._call("staging", directory, lambda: self.objects.close_staging(directory))

    def new_file(self, path: str, *, staging: str) -> NewFile:
        self.begins(path)
        return _DataFile(self, check_path(path), staging, self.objects.opening(staging))

    def begins(self, path: str) -> None:
        """From now on a task may send bytes of this data file."""
        if self._is_closed:  # a dead process finds its acks when the run is over
            raise ProcessDied
        self._history.record(Began(at=self._kernel.now, path=path, by=self.process.name))

    def close(self) -> None:
        """The run is over: every call to storage raises ProcessDied."""
        self._is_closed = True
        for call in list(self._waiting):
            self._answer(call, outcome.Error(ProcessDied()))

    async def _call(self, verb: str, path: str, act: Callable[[], Any]) -> Any:
        """Send ``act`` to storage, and return its answer. A caller that stops waiting does not stop the act."""
        if self._is_closed:
            raise ProcessDied
        call = next(self._calls)
        self._waiting[call] = trio.lowlevel.current_task()
        drawn = self._fate(verb, path)
        if self._repeats is not None and verb in TWICE and self._repeats.random() < self.faults.twice:
            drawn = self._sent_twice(self._repeats, drawn, verb, path, act)
        self.objects.requests[verb] += 1
        if drawn.name:
            self.mishap_count += 1
            self.objects.mishaps[drawn.name] += 1
            by, lands_s = self.process.name, drawn.lands_after_s
            self._history.record(
                Strayed(at=self._kernel.now, by=by, verb=verb, path=path, what=drawn.name, for_s=lands_s)
            )
        if drawn.lands_after_s is not None:
            land = partial(self._land, call, act, drawn.answered_after_s)
            self._kernel.after(drawn.lands_after_s, land if drawn.is_answered else self._landing(path, act))
        if not drawn.is_answered:
            lost = outcome.Error(Unavailable(drawn.name))
            self._kernel.after(drawn.answered_after_s, lambda: self._answer(call, lost))
        self.process.requests(verb, path)
        return await trio.lowlevel.wait_task_rescheduled(lambda _: self._given_up(call))

    def _sent_twice(self, chance: random.Random, second: Fate, verb: str, path: str, act: Callable[[], Any]) -> Fate:
        """Let the first copy land at some time; return the second one's fate, from now on."""
        first_s, silence_s = self.faults.late_s * chance.random(), chance.choice((0.0, 0.5, 5.0))
        second = later(second, silence_s)
        what = "lands once more" if second.is_answered and first_s > reported_after_s(second) else "sent twice"
        self._kernel.after(first_s, self._landing(path, act))
        self._repeat_count += 1
        self.objects.mishaps[what] += 1
        by = self.process.name
        self._history.record(Strayed(at=self._kernel.now, by=by, verb=verb, path=path, what=what, for_s=first_s))
        return second

    def _landing(self, path: str, act: Callable[[], Any]) -> Callable[[], None]:
        """Return what a request does whose answer nobody waits for.

        A log entry does not land in another life: where the log that is left ends right before, nobody can tell it from
        one that was won there.
        """
        life = self.objects.life

        def land() -> None:
            if life == self.objects.life or not path.startswith(f"{LOG_FOLDER}/"):
                self._land(-1, act, None)

        return land

    def _fate(self, verb: str, path: str) -> Fate:
        faults, objects, now = self.faults, self.objects, self._kernel.now
        if verb == "data" and self.process.loses_rewrite_answer:
            self.process.loses_rewrite_answer = False
            return fate_in_outage(faults, self._chance)
        if self.process.reserves_late_s and verb == "put" and "/open/" in path:
            late_s, self.process.reserves_late_s = self.process.reserves_late_s, 0.0
            return Fate(lands_after_s=late_s, answered_after_s=0.0, is_answered=True, name="late landing")
        if self.process.entry_fates and verb == "put" and f"{LOG_FOLDER}/" in path:
            return fate_of_entry(self.process.entry_fates.pop(0), faults, self._chance)
        if now >= self.process.beats_lost_at and verb == "put" and "/beat/" in path:
            return Fate(lands_after_s=None, answered_after_s=5.0, is_answered=False, name="heartbeat lost")
        if faults.outage is None:
            return fate(faults, self._chance)
        if now < objects.outage_until:
            return fate_in_outage(faults, self._chance)
        if not objects.outage_until and verb == faults.outage[0] and faults.outage[1] in path:
            objects.outage_until = now + faults.outage_s
            if self._chance.random() < 0.5:
                return fate_in_outage(faults, self._chance)
        return fate(faults, self._chance)

    def _land(self, call: int, act: Callable[[], Any], back_s: float | None) -> None:
        try:
            answer: outcome.Outcome[Any] = outcome.Value(act())
        except BackendError as error:
            answer = outcome.Error(error)
        if back_s is not None:
            self._kernel.after(back_s, lambda: self._answer(call, answer))

    def _answer(self, call: int, answer: outcome.Outcome[Any]) -> None:
        task = self._waiting.pop(call, None)
        if task is not None:
            trio.lowlevel.reschedule(task, answer)

    def _given_up(self, call: int) -> trio.lowlevel.Abort:
        del self._waiting[call]
        return trio.lowlevel.Abort.SUCCEEDED


class _DataFile:
    """Owned by a blocking task: its one call to storage is ``publish``."""

    def __init__(self, port: Port, path: str, staging: str, opening: object) -> None:
        self._port = port
        self._path = path
        self._staging = staging
        self._opening = opening
        self._bytes = io.BytesIO()

    @property
    def sink(self) -> BinaryIO:
        return self._bytes

    def publish(self) -> None:
        data, port = self._bytes.getvalue(), self._port
        by = port.process.name
        publish = partial(port.objects.publish, self._path, data, self._staging, self._opening, by)
        block_on(port._call("data", self._path, publish))

    def again(self, path: str) -> NewFile:
        port = self._port
        if port.has_staging:
            raise Unavailable(f"{path}: this store renames files into place")
        port.begins(path)
        port.objects.mishaps["data file under another name"] += 1
        other = _DataFile(port, check_path(path), self._staging, self._opening)
        other._bytes = self._bytes
        return other

    def abandon(self) -> None:
        self._bytes = io.BytesIO()
