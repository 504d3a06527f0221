"""Writer of checkpoints: parts first, then the manifest that names them, then the pointer to the manifest.

A death at any point leaves the pointer unchanged; the new objects then have no pointer, and ``tallymark clean`` deletes
them. Of two concurrent writers the later pointer stays.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.history_base import HistoryBase
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.views.base import PartitionState
from tallymark.engine.views.block import as_of
from tallymark.engine.views.checkpoint_format import (
    POINTER,
    Manifest,
    Part,
    encode_manifest,
    encode_part,
    encode_pointer,
    manifest_name,
    position_of,
)
from tallymark.engine.views.checkpoint_reader import Checkpoints
from tallymark.engine.views.part_plan import Cutter, Rows, Run, plan_parts
from tallymark.engine.views.view import View

PARTS_AHEAD = 16
"""Parts put at once: at 30 ms per request those of a million files take half a second, and 10 MB of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointed:
    """Result of ``write_checkpoint``."""

    position: int
    partitions: int
    """Partitions that contain files."""
    files: int
    parts: int
    parts_written: int
    """Of the parts, those that were written; the others are those of the checkpoint before. 0 where the newest
    checkpoint was already of this position.
    """
    bytes_written: int
    seconds: float


async def write_checkpoint(
    backend: Backend,
    checkpoints: Checkpoints,
    history: History,
    view: View,
    base: HistoryBase | None = None,
    *,
    needed: Collection[int] = (),
    table: str,
) -> Checkpointed | None:
    """Write a checkpoint of the head of both, and use it as the base from now on. Return the newest one if it is as
    new, and archives the log as far.

    Everything up to that position has been projected. Returns None where another writer has put one since: then nothing
    of this one is left. ``base`` is that of the history, by default without an archive. Checkpoints of the
    ``needed`` positions are not deleted. ``table`` is the table's creation time.
    """
    assert view.head == history.head, f"a view of position {view.head}, and a history of {history.head}"
    new = _New(
        backend,
        checkpoints,
        base or history.as_base(),
        dict(view.states),
        view,
        needed=needed,
        table=table,
    )
    return await new.write(history)


@dataclass(slots=True)
class _New:
    """A checkpoint that is being written, of one position, whatever is committed since."""

    backend: Backend
    checkpoints: Checkpoints
    base: HistoryBase
    states: Mapping[str, PartitionState]
    view: View
    table: str = field(kw_only=True)
    needed: Collection[int] = field(kw_only=True)
    nonce: str = field(default_factory=new_nonce)
    put: list[str] = field(default_factory=list)
    """Paths of the objects that were put for it."""
    put_bytes: int = 0

    async def write(self, history: History) -> Checkpointed | None:
        started = anyio.current_time()
        pointer = await self.checkpoints.pointer()
        newest = await self._previous(pointer, history)
        is_sound = not self.checkpoints.is_damaged
        if newest is not None and is_sound and self._is_enough(newest):
            return self._done(newest, started)
        if newest is not None and newest.position > self.base.position:
            return None  # it may use the damaged part again
        if newest is not None:  # its writer may have known of more that is archived
            self.base = self.base.archived(newest.history.start, newest.history.floor)
            if newest.position == self.base.position:
                self.nonce = _nonce_after(newest.name)
        # A part that could not be read is not used again: then this one is written whole.
        reused = newest if is_sound else None
        parts, floor = await self._parts(reused)
        if floor > self.base.position:
            await self._give_up()  # rows that the position sees may have gone while the parts were read
            return None
        manifest = Manifest(
            name=manifest_name(self.base.position, self.nonce),
            table=self.table,
            history=self.base,
            floor=floor,
            states=self.states,
            parts=parts,
        )
        await self._put(manifest.path, encode_manifest(manifest))
        if await self.checkpoints.pointer() != pointer:
            await self._give_up()  # parts that this one names may have been dropped by the writer of that
            return None
        named = [manifest.name, *([newest.name] if newest is not None else [])]
        await self.backend.put(POINTER, encode_pointer(named))
        await self._drop(pointer, kept=manifest.paths | (newest.paths if newest is not None else frozenset()))
        self._start_there(manifest, history)
        return self._done(manifest, started)

    def _is_enough(self, newest: Manifest) -> bool:
        """Return whether the newest checkpoint is as new as this one would be, and archives the log as far."""
        return (newest.position, newest.history.start) >= (self.base.position, self.base.start)

    def _done(self, manifest: Manifest, started: float) -> Checkpointed:
        return Checkpointed(
            position=manifest.position,
            partitions=sum(state.live > 0 for state in manifest.states.values()),
            files=sum(state.live for state in manifest.states.values()),
            parts=len(manifest.parts),
            parts_written=max(0, len(self.put) - 1),
            bytes_written=self.put_bytes,
            seconds=anyio.current_time() - started,
        )

    async def _give_up(self) -> None:
        await self.backend.delete(self.put)

    async def _previous(self, pointer: Sequence[str], history: History) -> Manifest | None:
        """Return the newest readable checkpoint of this log."""
        known = self.checkpoints.manifest
        for name in pointer:
            manifest = known if known is not None and known.name == name else await self.checkpoints.read(name)
            if manifest is not None and _is_of(manifest, history):
                return manifest
        return None

    async def _parts(self, previous: Manifest | None) -> tuple[tuple[Part, ...], int]:
        """Return all parts, the new ones being durable, and the oldest position that they cover."""
        since = 0 if previous is None else previous.position
        changed = frozenset(partition for partition, state in self.states.items() if state.changed_at > since)
        floor = self.view.floor
        plan = plan_parts(self.states, changed, () if previous is None else previous.parts, floor=floor)
        await self.view.read([partition for step in plan if isinstance(step, Run) for partition in step.partitions])
        done: list[Part] = []
        waiting: list[list[Rows]] = []
        for step in plan:
            if isinstance(step, Part):
                done.append(step)
                continue
            cutter = Cutter()
            for partition in step.partitions:
                block, oldest = as_of(await self.view.block(partition), self.base.position, floor=floor)
                waiting += cutter.add(Rows(partition, block, oldest))
                if len(waiting) >= PARTS_AHEAD:
                    done += await self._put_parts(waiting)
                    waiting = []
            waiting += cutter.end()
        done += await self._put_parts(waiting)
        # a part that is used again lacks rows that only a position before its own floor sees
        covered = max(self.view.floor, 0 if previous is None else previous.floor)
        return tuple(sorted(done, key=lambda part: part.first)), covered

    async def _put_parts(self, parts: Sequence[list[Rows]]) -> list[Part]:
        done: list[Part] = []

        async def put(rows: list[Rows]) -> None:
            name = f"{manifest_name(self.base.position, self.nonce)}.{len(self.put)}"
            data = encode_part({each.partition: each.block for each in rows})
            part = Part(
                first=rows[0].partition,
                last=rows[-1].partition,
                name=name,
                size=len(data),
                rows_bytes=sum(len(each.block) for each in rows),
                oldest_removal=min((each.oldest_removal for each in rows if each.oldest_removal), default=0),
            )
            await self._put(part.path, data)
            done.append(part)

        await concurrently(put, parts, limit=PARTS_AHEAD)
        return done

    async def _put(self, path: str, data: bytes) -> None:
        self.put.append(path)
        self.put_bytes += len(data)
        await self.backend.put(path, data)

    async def _drop(self, pointer: Sequence[str], *, kept: frozenset[str]) -> None:
        """Delete what an earlier pointer named and neither of the newest two needs; the rest is deleted as stray
        objects are.
        """
        for name in pointer[1:]:
            if position_of(name) in self.needed:
                continue
            if (manifest := await self.checkpoints.read(name, is_needed=False)) is not None:
                await self.backend.delete(sorted(manifest.paths - kept))

    def _start_there(self, manifest: Manifest, history: History) -> None:
        self.checkpoints.is_damaged = False
        base = self.checkpoints.start_at(manifest)
        if base.floor <= self.view.floor:  # else the view keeps an older position, which its own base covers
            self.view.rebase(base)
        history.forget(manifest.position)
        history.archive(manifest.history.start, manifest.history.floor)


def _nonce_after(name: str) -> str:
    """Return a greater nonce than that of a manifest: of two of one position, listings show by it which is newer."""
    least = int(name.rpartition("-")[2], 16) + 1
    return f"{least + int(new_nonce(), 16) % (2**128 - least):032x}"


def _is_of(manifest: Manifest, history: History) -> bool:
    """Return whether it is of this log, as far as the history shows: one beyond the head counts as of a log that has
    continued.
    """
    position = manifest.position
    return position > history.head or (
        position >= history.base and history.hash_at(position) == manifest.history.hash.hex()
    )
