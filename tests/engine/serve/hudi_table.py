"""The timeline of a table as Hudi's writers leave it, by hand."""

from typing import Literal

from tallymark.backends import Backend

INSTANT = "20261124101500000"
OTHER = "20261124101500001"
COMPLETION = "20261124101742123"


async def put_table(storage: Backend, version: int, *, folder: str = "timeline") -> None:
    layout = 1 if version == 6 else 2
    text = f"hoodie.table.version={version}\nhoodie.timeline.layout.version={layout}\nhoodie.timeline.path={folder}\n"
    await storage.put(".hoodie/hoodie.properties", text.encode())


async def put_state(
    storage: Backend,
    version: int,
    state: Literal["absent", "requested", "inflight", "completed"],
    *,
    pending: str = "commit",
    completed: str = "commit",
) -> None:
    """Bring the instant into this state, from any other."""
    folder = ".hoodie" if version == 6 else ".hoodie/timeline"
    inflight = "inflight" if pending == "commit" else f"{pending}.inflight"
    end = f"{folder}/{INSTANT}.{completed}" if version == 6 else f"{folder}/{INSTANT}_{COMPLETION}.{completed}"
    names = [f"{folder}/{INSTANT}.{pending}.requested", f"{folder}/{INSTANT}.{inflight}", end]
    reached = ["absent", "requested", "inflight", "completed"].index(state)
    for name in names[:reached]:
        await storage.put(name, b"{}")
    await storage.delete(names[reached:])
