"""A local store as ``ls`` and ``cat`` see it."""

import os
from pathlib import Path

from tallymark.backends.local import SCRATCH, LocalBackend


class LocalPeek:
    """The directory itself, read around the backend."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.backend = LocalBackend(root)

    def objects(self) -> dict[str, bytes]:
        return {
            (Path(folder) / name).relative_to(self.root).as_posix(): (Path(folder) / name).read_bytes()
            for folder, _, names in os.walk(self.root)
            for name in names
        }

    def directories(self) -> list[str]:
        empty = [Path(folder) for folder, folders, names in os.walk(self.root) if not folders and not names]
        own = (self.root, self.root / SCRATCH)
        return sorted(folder.relative_to(self.root).as_posix() for folder in empty if folder not in own)
