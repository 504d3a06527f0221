"""A table is removed, or put back to an older copy, beside its jobs."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import trio

from tallymark.engine.timeline.properties import TableProperties
from tests.history import Befell, Landed
from tests.promises import PROPERTIES
from tests.simulation.lives.histories import OPEN, OPERATOR
from tests.simulation.plan import ReplacementPlan
from tests.simulation.process import Process
from tests.simulation.scene import Scene
from tests.table_invariants import LOG, Storage, decisions, entries_beyond_a_gap, no_bookkeeping_is_left

POLL_S = 0.05

PATIENCE_S = 60.0
"""How long somebody waits who wants to replace the table."""


async def replace_table(scene: Scene, plan: ReplacementPlan) -> None:
    """Replace all of storage at once, when no instant is decided and not finished.

    Between its decision and its end a job deletes what its entry has replaced, and nothing tells it that the table is
    another one. So these steps are not played in another life, nor are deletes, projections and checkpoints that were
    under way.
    """
    started = trio.current_time()
    objects, copy, copied = scene.objects, dict[str, bytes](), 0
    if plan.copied_at_s is not None:
        await trio.sleep(plan.copied_at_s)
        if not await _until(partial(_is_at_rest, scene.objects.data), plan.at_s - plan.copied_at_s):
            return
        copy, copied = dict(objects.data), len(scene.history.events)
    await trio.sleep_until(started + plan.at_s)
    if not await _until(partial(_is_replaceable, scene, copied), PATIENCE_S) or objects.data == copy:
        return
    are_open = any(path.startswith(OPEN) for path in objects.data)
    if are_open:
        scene.mishaps[f"table {'removed' if plan.copied_at_s is None else 'restored'} beside open jobs"] += 1
    dead = [process for process in scene.processes.values() if process.is_dead and "/" not in process.name]
    if are_open and dead:
        scene.mishaps["table replaced after a death"] += 1
    at_work = {port.process for port in scene.ports if not port.process.has_ended.is_set()}
    for process in at_work:
        process.was_disturbed = True
    properties = objects.data.get(PROPERTIES, b"")
    objects.replace(copy, copied, frozenset(process.name for process in at_work))
    if not copy and properties:  # made again at once: where something lies, nobody makes a table
        again = replace(TableProperties.decode(properties), id="another")
        objects.put(PROPERTIES, again.encode(), OPERATOR)


def drop_beyond_a_gap(scene: Scene) -> None:
    """As somebody who has read what the error says: a job of the former life has put entries that follow no other."""
    if scene.objects.life and (beyond := entries_beyond_a_gap(scene.objects.data)):
        scene.mishaps["entry beyond the end of an older copy"] += 1
        scene.objects.delete(beyond, OPERATOR, scene.objects.life)


async def _until(holds: Callable[[], bool], patience_s: float) -> bool:
    """Return whether it holds in time."""
    with trio.move_on_after(patience_s):
        while not holds():  # noqa: ASYNC110  # no event says so
            await trio.sleep(POLL_S)
        return True
    return False


def _is_at_rest(storage: Storage) -> bool:
    try:
        no_bookkeeping_is_left(storage)
    except AssertionError:
        return False
    return f"{LOG}{1:020d}" in storage


def _is_replaceable(scene: Scene, copied: int) -> bool:
    """No instant is decided whose own writer, or another process, may be in the steps after its entry; nobody starts to
    write, or recovers, and may project what it has read of the log. The one job that lives has read entries that a copy
    lacks: one that has not goes on in the copy.
    """
    storage = scene.objects.data
    if not storage or any(not process.is_dead for process in scene.preparing):
        return False
    decided = decisions(storage)
    at_work = [instant for process, instant in _instants(scene) if not process.has_ended.is_set()]
    if len(at_work) > 1:  # one would take the void entry of another for one of its log
        return False
    if copied and not all(_has_read_beyond(scene, copied, instant) for instant in at_work):
        return False
    return not any(f"{OPEN}{instant}" in storage or instant in at_work for instant in decided)


def _instants(scene: Scene) -> Iterator[tuple[Process, str]]:
    for event in scene.history.of(Befell):
        if event.what.startswith("has instant "):
            yield scene.processes[event.process], event.what.rpartition(" ")[2]


def _has_read_beyond(scene: Scene, copied: int, instant: str) -> bool:
    """Return whether an entry landed after the copy was made, and before the reservation, which precedes a reading."""
    landed = [event.path for event in scene.history.events[copied:] if isinstance(event, Landed)]
    entry = next((place for place, path in enumerate(landed) if path.startswith(LOG)), len(landed))
    return f"{OPEN}{instant}" in landed[entry:]
