"""Identity of a writer's process, so that another on the same machine can detect at once that it has ended."""

import os
import socket
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import Any

_PID_MAX = (1 << 31) - 1
"""Maximum of the kernel's type for it; a greater id cannot be queried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterIdentity:
    """A process of one boot of one machine. An unknown fact is None; then only the lease decides."""

    host: str
    boot_id: str | None
    pid_namespace: str | None
    """Two containers of one machine share the boot, and neither sees the other's processes."""
    pid: int
    started: str | None
    """Start time of the process in clock ticks since boot, since process ids are reused."""

    @classmethod
    def here(cls) -> "WriterIdentity":
        return _of_process(os.getpid())

    def is_gone(self, *, seen_from: "WriterIdentity") -> bool:
        """Return whether this process certainly has ended: same machine, same boot, and no process with that id."""
        mine = (self.host, self.boot_id, self.pid_namespace)
        if None in mine or self.started is None or mine != (seen_from.host, seen_from.boot_id, seen_from.pid_namespace):
            return False
        started = _started(self.pid)
        return started != self.started if started is not None else _is_free(self.pid)

    def fields(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_fields(cls, fields: dict[str, Any]) -> "WriterIdentity":
        """Return the identity of ``fields``; further ones, of a later release, are ignored.

        Raises KeyError, TypeError, ValueError.
        """
        found = cls(**{field.name: fields[field.name] for field in dataclass_fields(cls)})
        facts = (found.boot_id, found.pid_namespace, found.started)
        if type(found.host) is not str or any(type(fact) not in (str, NoneType) for fact in facts):
            raise TypeError("a fact of a process is not a text")
        if type(found.pid) is not int or not 0 < found.pid <= _PID_MAX:
            raise ValueError("no process has such an id")
        return found


@lru_cache(maxsize=1)
def _of_process(pid: int) -> WriterIdentity:
    """Return the identity of this process, which has this id: a forked child has another."""
    return WriterIdentity(
        host=socket.gethostname(),
        boot_id=_text("/proc/sys/kernel/random/boot_id"),
        pid_namespace=_link("/proc/self/ns/pid"),
        pid=pid,
        started=_started(pid),
    )


def _started(pid: int) -> str | None:
    """Return field 22 of /proc/<pid>/stat; the command before it may contain spaces and brackets. None if it is not
    visible.

    A process that has ended and waits for its parent has no start time any more: ``ended``.
    """
    stat = _text(f"/proc/{pid}/stat")
    if stat is None:
        return None
    fields = stat.rpartition(")")[2].split()
    return "ended" if fields[0] in ("Z", "X") else fields[19]


def _is_free(pid: int) -> bool:
    """Return whether no process has this id, also where /proc hides those of other users."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text("ascii", errors="replace").strip()
    except OSError:
        return None


def _link(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except OSError:
        return None
