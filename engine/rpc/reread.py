"""A value that is read from files, and read again when they have changed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class Reread(Generic[T]):
    """The value is that of the last reading that has succeeded."""

    def __init__(self, paths: Sequence[Path], read: Callable[[], T]) -> None:
        """Raises OSError for a file that is missing, and what ``read`` does."""
        self._paths = paths
        self._read = read
        self._version = self._current()
        self.value = read()

    def refresh(self) -> bool:
        """Read again where a file has changed. Return whether that was so.

        Raises as the constructor; then the value is as before, and the next call reads again.
        """
        version = self._current()
        if version == self._version:
            return False
        self.value = self._read()
        self._version = version
        return True

    def _current(self) -> list[tuple[int, ...]]:
        found = [path.stat() for path in self._paths]
        return [(each.st_ino, each.st_mtime_ns, each.st_ctime_ns, each.st_size) for each in found]
