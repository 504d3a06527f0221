"""The sides, in the order of the tables: ours, and what they stand beside."""

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from tallymark.bench.peers.delta_log import has_delta, release
from tallymark.bench.peers.timeline_server import ViewStorage
from tallymark.bench.views.far_side import FarSide
from tallymark.bench.views.ground import Ground
from tallymark.bench.views.held_side import HeldSide
from tallymark.bench.views.hudi_side import HudiSide
from tallymark.bench.views.listing_sides import LATENCY_S, DiskSide, S3Side
from tallymark.bench.views.served_side import ServedSide
from tallymark.bench.views.side import Side

STORES = ("memory", "spillable", "key-value")
"""Of ours: where it keeps what it knows."""

MEMORY_BYTES = 32 << 20
"""Of blocks that a store with a disk may have in memory: less than the default, so that a million files do not fit."""


def sides(kind: str, ground: Ground, small: Ground) -> Iterator[Side]:
    """Of one of ``KINDS``. ``small`` is a table that processes are warmed up with."""
    match kind:
        case "ours":
            for store in STORES:
                yield from _ours(store, ground, small)
        case "hudi":
            for view in get_args(ViewStorage):
                yield HudiSide(ground, view)
        case "delta":
            yield HeldSide(
                name="delta",
                title=f"deltalake {release()}, in process" if has_delta() else "deltalake",
                told={"held": "delta", "table": str(ground.delta)},
                warm={"held": "delta", "table": str(small.delta)},
                warm_question=small.questions[0],
                ground=ground,
            )
        case "listing":
            yield DiskSide(ground)
            yield S3Side(ground)


def _ours(store: str, ground: Ground, small: Ground) -> Iterator[Side]:
    settings = {"store": store, "memory_bytes": MEMORY_BYTES, "folder": str(ground.folder / "stores")}
    told = {"held": "ours", "table": str(ground.table), "views": settings}
    near = HeldSide(
        name=f"ours-{store}",
        title=f"Tallymark, {store}, in process",
        told=told,
        warm={**told, "table": str(small.table)},
        warm_question=small.questions[0],
        ground=ground,
    )
    yield near
    yield ServedSide(name=f"ours-{store}-served", title=f"Tallymark, {store}, served", told=told, ground=ground)
    if store == STORES[0]:
        yield from _bootstraps(near, ground)


def _bootstraps(near: HeldSide, ground: Ground) -> Iterator[Side]:
    """What it takes to be ready without a checkpoint, and on a store that is far away."""
    bare = {**near.told, "table": str(ground.bare)}
    by_log = replace(near, name="ours-log", title="Tallymark, no checkpoint", told=bare, is_ready_only=True)
    where = f"S3, {LATENCY_S * 1000:.0f} ms a request"
    yield by_log
    yield FarSide(name="ours-far", title=f"Tallymark, {where}", near=near, table=ground.table)
    yield FarSide(name="ours-far-log", title=f"Tallymark, {where}, no checkpoint", near=by_log, table=ground.bare)
