"""Markers that somebody else has put, or that have lost bytes, beside a job."""

from collections.abc import Iterator

import msgpack
import trio

from tallymark.engine.markers.segment import encode_segment, segment_name
from tests.history import Befell
from tests.promises import PROPERTIES
from tests.simulation.lives.histories import OPEN
from tests.simulation.plan import DamagePlan
from tests.simulation.scene import Scene
from tests.table_invariants import LOG, committed_files, decisions

STRANGER = "stranger"

POLL_S = 0.05
ATTEMPTS = 400

SEGMENTS = "MARKERS1"
"""How the names of a server's segments begin."""

FOREIGN_INCARNATION = 2000
"""No server of a run gets as far."""


async def damage_markers(scene: Scene, plan: DamagePlan) -> None:
    """Change the markers of the first open job that has segments from then on."""
    await trio.sleep(plan.at_s)
    for _ in range(ATTEMPTS):
        if found := _open_segments(scene, of_dead=plan.what == "lost"):
            break
        await trio.sleep(POLL_S)
    else:
        return
    instant = found[0].split("/")[2]
    if plan.what == "foreign names":
        _name_foreign_files(scene, instant)
        return
    scene.mishaps[f"segments {plan.what}"] += 1
    scene.damaged = instant
    if plan.what == "lost":  # those in flight, too: that one of several is missing is not noticed
        scene.objects.lost = f".hoodie/.temp/{instant}/{SEGMENTS}"
    for path in found if plan.what == "lost" else found[-1:]:
        scene.note(next(iter(scene.processes.values())), f"{path} is {plan.what}")
        if plan.what == "lost":
            del scene.objects.data[path]
        else:
            scene.objects.data[path] = b"" if plan.what == "emptied" else scene.objects.data[path][:-1]


def _open_segments(scene: Scene, *, of_dead: bool) -> list[str]:
    """The segments of the first job that is open and undecided."""
    storage = scene.objects.whole
    decided = decisions(storage)
    dead = {event.what.rpartition(" ")[2] for event in scene.history.of(Befell) if _has_died(scene, event)}
    for instant in sorted(path.removeprefix(OPEN) for path in storage if path.startswith(OPEN)):
        segments = sorted(name for name in storage if f"/.temp/{instant}/{SEGMENTS}" in name)
        if instant not in decided and segments and (instant in dead or not of_dead):
            return segments
    return []


def _has_died(scene: Scene, event: Befell) -> bool:
    return "has instant " in event.what and scene.processes[event.process].is_dead


def _name_foreign_files(scene: Scene, instant: str) -> None:
    """Put a segment, direct markers and a list of fences that name what is not the instant's."""
    objects, folder = scene.objects, f".hoodie/.temp/{instant}"
    files = list(_foreign_files(scene, instant))
    scene.mishaps["foreign names beside markers"] += 1
    lines = [f"{path}.marker.CREATE" for path in files]
    objects.put(f"{folder}/{segment_name(FOREIGN_INCARNATION, 0)}", encode_segment(lines), STRANGER)
    objects.put(f"{folder}/DIRECT", b"", STRANGER)
    for line in lines:
        objects.put(f"{folder}/{line}", b"", STRANGER)
    objects.put(f".hoodie/.tallymark/fence/{instant}/foreign", msgpack.packb(files), STRANGER)


def _foreign_files(scene: Scene, instant: str) -> Iterator[str]:
    """Committed files, the table's properties, the newest log entry."""
    yield from sorted(committed_files(scene.objects.whole))[:3]
    yield PROPERTIES
    yield max(path for path in scene.objects.data if path.startswith(LOG))
