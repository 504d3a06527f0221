"""What a backend asks of the operating system, in order."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


class SystemCalls:
    """Records syncs and changes of names, as (verb, path below the root). The calls happen as usual."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, str]] = []
        self._root = root
        for verb in ("link", "replace", "rename"):
            monkeypatch.setattr(os, verb, self._recorded(verb, getattr(os, verb), lambda source, target: target))
        for verb in ("unlink", "mkdir", "rmdir"):
            monkeypatch.setattr(os, verb, self._recorded(verb, getattr(os, verb), lambda path, *_: path))
        monkeypatch.setattr(
            os, "fsync", self._recorded("fsync", os.fsync, lambda file: Path(f"/proc/self/fd/{file}").readlink())
        )

    def _recorded(
        self, verb: str, call: Callable[..., object], path_of: Callable[..., str | Path]
    ) -> Callable[..., None]:
        def record(*arguments, **named):
            path = path_of(*arguments)
            call(*arguments, **named)
            self.made.append((verb, Path(path).relative_to(self._root).as_posix()))

        return record

    def clear(self) -> None:
        self.made.clear()

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.made]

    def last(self, verb: str, path: str) -> int:
        """When the call was last made; it is an error if it never was."""
        return max(index for index, call in enumerate(self.made) if call == (verb, path))

    def count(self, verb: str) -> int:
        return self.verbs().count(verb)
