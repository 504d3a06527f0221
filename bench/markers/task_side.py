"""Ours without a service: direct markers, which tasks put themselves, or an engine in the process that asks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import anyio

from tallymark.backends import open_backend
from tallymark.bench.markers.load import Seen
from tallymark.bench.markers.place import MarkerPlace, options_of
from tallymark.bench.markers.side import AS_TASKS, Left, Spent
from tallymark.bench.markers.talk import Address
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.segment import is_segment, marker_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSide:
    """``direct``: an empty object a marker. ``inside``: batched, by an engine in the one process of all callers."""

    mark: Literal["direct", "inside"]
    place: MarkerPlace

    @property
    def name(self) -> str:
        return f"ours-{self.mark}"

    @property
    def title(self) -> str:
        return {"direct": "Tallymark, direct", "inside": "Tallymark, batched, in process"}[self.mark]

    @property
    def is_filled(self) -> bool:
        """Files of direct markers take as long to go as to come: the table of a store that is far away has them."""
        return self.mark != "direct"

    @contextmanager
    def opened(self) -> Iterator["_OpenTasks"]:
        yield _OpenTasks(self)


@dataclass(frozen=True, slots=True)
class _OpenTasks:
    side: TaskSide

    def address(self, instant: str) -> Address:
        told = {"program": AS_TASKS, "mark": self.side.mark, "instant": instant, **self.side.place.told()}
        return told if self.side.mark == "direct" else {**told, "processes": 1}

    def spent(self, _instant: str) -> Spent:
        return Spent()

    def to_store(self, spent: Spent, found: Seen) -> Spent:
        """Each direct marker is a put without a byte."""
        return replace(spent, puts=found.answered, sent_bytes=0) if self.side.mark == "direct" else spent

    def settle(self, instant: str) -> Left:
        return anyio.run(self._left, instant, backend="trio")

    def delete(self, instant: str) -> float:
        return anyio.run(self._delete, instant, backend="trio")

    async def _left(self, instant: str) -> Left:
        folder = marker_folder(instant)
        backend = open_backend(self.side.place.url, options=options_of(self.side.place.told()))
        names = [entry.path.removeprefix(f"{folder}/") async for entry in backend.list(folder)]
        held = [name for name in names if is_segment(name) or ".marker." in name]
        return Left(objects=len(names), segments=len(held))

    async def _delete(self, instant: str) -> float:
        backend = open_backend(self.side.place.url, options=options_of(self.side.place.told()))
        async with open_marker_engine(backend) as engine:
            began = time.perf_counter()
            await engine.directory(instant).delete()
            return time.perf_counter() - began
