"""One process of a race for new names; started by ``test_local``."""

from collections.abc import Sequence

import anyio

from tallymark.backends import AlreadyExists
from tallymark.backends.local import LocalBackend


def race(root: str, writer: int, paths: Sequence[str], barrier, won) -> None:
    """Try to take each path, and report those that were taken."""
    backend = LocalBackend(root)

    async def main() -> list[str]:
        taken = []
        for path in paths:
            try:
                await backend.put_new(path, b"%d" % writer)
            except AlreadyExists:
                continue
            taken.append(path)
        return taken

    barrier.wait(120)
    won.put((writer, anyio.run(main)))
