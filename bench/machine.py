"""The machine that a benchmark ran on: a figure without it says nothing."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("tallymark", "obstore", "hdfs-native", "anyio", "trio", "pyarrow", "pyspark", "deltalake", "pyiceberg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    cpu: str
    core_count: int
    """Cores that this process may use."""
    memory_bytes: int
    kernel: str
    python: str
    libraries: dict[str, str]
    """Releases, of those that are installed."""
    load: float
    """Processes that ran or waited for a core in the minute before: well above 0, others share the machine."""

    @classmethod
    def here(cls) -> "Machine":
        return cls(
            cpu=_cpu(),
            core_count=len(os.sched_getaffinity(0)),
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            kernel=f"{platform.system()} {platform.release()}",
            python=f"{platform.python_implementation()} {platform.python_version()}",
            libraries=dict(_installed()),
            load=os.getloadavg()[0],
        )

    def __str__(self) -> str:
        libraries = ", ".join(f"{name} {release}" for name, release in self.libraries.items())
        return (
            f"{self.cpu}, {self.core_count} cores, {self.memory_bytes / 2**30:.0f} GiB; {self.kernel}; load before: "
            f"{self.load:.1f}\n{self.python}, {libraries}"
        )


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def _installed() -> list[tuple[str, str]]:
    found = []
    for name in LIBRARIES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found
