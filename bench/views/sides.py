"""The sides, in the order of the tables: ours, and what they stand beside."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from tallymark.bench.peers.delta_log import has_delta, release
from tallymark.bench.peers.timeline_server import ViewStorage
from tallymark.bench.views.ground import Ground
from tallymark.bench.views.held_side import HeldSide
from tallymark.bench.views.hudi_side import HudiSide
from tallymark.bench.views.listing_sides import DiskSide, S3Side
from tallymark.bench.views.side import Side


def sides(kind: str, ground: Ground, small: Ground) -> Iterator[Side]:
    """Of one of ``KINDS``. ``small`` is a table that processes are warmed up with."""
    match kind:
        case "ours":
            yield _held("ours-memory", "Tallymark, memory, in process", "ours", ground, small)
        case "hudi":
            for view in get_args(ViewStorage):
                yield HudiSide(ground, view)
        case "delta":
            title = f"deltalake {release()}, in process" if has_delta() else "deltalake"
            yield _held("delta", title, "delta", ground, small)
        case "listing":
            yield DiskSide(ground)
            yield S3Side(ground)


def _held(name: str, title: str, kind: str, ground: Ground, small: Ground) -> Side:
    def told(of: Ground) -> dict[str, object]:
        return {"held": kind, "table": str(_folder(kind, of))}

    return HeldSide(
        name=name,
        title=title,
        told=told(ground),
        warm=told(small),
        warm_question=small.questions[0],
        ground=ground,
    )


def _folder(kind: str, ground: Ground) -> Path:
    return ground.delta if kind == "delta" else ground.table
