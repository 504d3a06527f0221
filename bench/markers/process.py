"""What the system says of a process: its CPU, and the bytes that it has written."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReading:
    cpu_s: float
    """Of all its threads, the system's part included; to a hundredth of a second."""
    written_bytes: int
    """That it has given to ``write``, wherever to: sockets, too, unless it uses ``send``."""
    disk_bytes: int
    """That it has caused to be sent to a disk, in whole pages; a file in memory is none."""

    @classmethod
    def of(cls, pid: int) -> "ProcessReading":
        folder = Path("/proc", str(pid))
        ticks = (folder / "stat").read_text().rpartition(")")[2].split()
        io = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
        return cls(
            cpu_s=(int(ticks[11]) + int(ticks[12])) * _TICK_S,
            written_bytes=int(io["wchar"]),
            disk_bytes=int(io["write_bytes"]),
        )
