"""The operating system's calls on a directory of this machine, with the syncs that make them durable."""

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path


class Disk:
    name = "os calls"

    def __init__(self, root: Path) -> None:
        self._root = root
        self._scratch = root / ".scratch"
        self._scratch.mkdir(parents=True, exist_ok=True)

    def get(self, path: str) -> object:
        """Synced as in our backend: what was read may be acted on, and a crash must not take it back."""
        target = self._root / path
        data = target.read_bytes()
        sync(target.parent)
        return data

    def put(self, path: str, data: bytes) -> None:
        scratch, target = self._written([data]), self._root / path
        try:
            scratch.replace(target)
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            scratch.replace(target)
        sync(target.parent)

    def put_new(self, path: str, data: bytes) -> None:
        self.data_file(path, [data])

    def list(self, directory: str) -> int:
        return len(sorted(_walk(os.fspath(self._root / directory))))

    def delete(self, paths: Sequence[str]) -> None:
        targets = [self._root / path for path in paths]
        for target in targets:
            target.unlink()
        for folder in {target.parent for target in targets}:
            sync(folder)

    def data_file(self, path: str, pieces: Sequence[bytes]) -> None:
        scratch, target = self._written(pieces), self._root / path
        try:
            os.link(scratch, target)
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(scratch, target)
        sync(target.parent)
        scratch.unlink()

    def _written(self, pieces: Sequence[bytes]) -> Path:
        scratch = self._scratch / secrets.token_hex(12)
        with scratch.open("xb", buffering=0) as file:
            for piece in pieces:
                file.write(piece)
            os.fsync(file.fileno())
        return scratch


def _walk(folder: str) -> Iterator[tuple[str, int, float]]:
    with os.scandir(folder) as found:
        for item in found:
            if item.is_dir(follow_symlinks=False):
                yield from _walk(item.path)
            else:
                facts = item.stat()
                yield item.path, facts.st_size, facts.st_mtime


def sync(path: Path) -> None:
    """Make a folder's names, or a file's bytes, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
