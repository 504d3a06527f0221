"""Half a day of a busy marker engine: one job after the other, and a crash an hour. Nothing may grow.

    python -m tests.simulation.twelve_hours                      # 72 markers a second, asked for by 36
    python -m tests.simulation.twelve_hours --names 1            # each by itself: 64 flushes a second

Each hour is a job of its own, served by a process of its own, which is killed at the full hour with requests, flushes
and perhaps a merge under way. Its successor reads what it has left, makes sure that no acked marker is missing, deletes
it, and begins the next job. Time is virtual; markers are asked for at random moments (a Poisson process), and puts take
a random time (lognormal).
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import trio
from rich.console import Console
from rich.table import Table

from tallymark.engine.markers import MarkerDirectory, open_marker_engine
from tallymark.engine.markers.statistics import MarkerStatistics
from tests.history import Event, History
from tests.simulation.fault_profile import FaultProfile
from tests.simulation.kernel import Kernel
from tests.simulation.process import Process
from tests.simulation.storage import Objects, Port

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    hours: int = 12
    rate: float = 72.0
    """Markers a second."""
    names: int = 36
    """Markers in one request: a task asks for all partitions that a batch of its rows touches."""
    put_s: float = 0.03
    """Median time of a put."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """One life of a server, seen from outside."""

    markers: int
    """Acked."""
    marker_bytes: int
    lost: int
    """Acked, and not found by the successor."""
    objects_max: int
    """The most objects that lay in the directory at a time."""
    ack_s: float
    """Mean time from a request to its ack."""
    resident_mib: float
    """Of the whole program, at the end of the hour."""
    statistics: MarkerStatistics

    @property
    def bytes_ratio(self) -> float:
        """Bytes written, flushes and merges and repeats, for each byte of markers."""
        return self.statistics.put_bytes / self.marker_bytes


class _Unrecorded(History):
    def record(self, event: Event) -> None:
        """Millions of events would be all that grows."""


class TwelveHours:
    def __init__(self, setting: Setting, *, seed: int = 0) -> None:
        self.setting = setting
        self.hours: list[Hour] = []
        self._kernel = Kernel(seed)
        self._objects = Objects(self._kernel, _Unrecorded(), has_staging=False)
        self._chance = self._kernel.stream("arrivals")

    def play(self) -> Sequence[Hour]:
        self._kernel.run(self._play)
        return self.hours

    async def _play(self) -> None:
        for number in range(self.setting.hours):
            life = _Life(self, number)
            async with trio.open_nursery() as nursery:
                life.process.start(nursery, life.serve)
                await trio.sleep_until((number + 1) * HOUR_S)
                life.process.kill()
                self.hours.append(await life.succeed())
                nursery.cancel_scope.cancel()
                life.process.close()
                life.port.close()

    def port(self, process: Process) -> Port:
        return Port(self._kernel, self._objects, process, FaultProfile(put_s=self.setting.put_s, spread=0.5))


class _Life:
    """One job and its server."""

    def __init__(self, world: TwelveHours, number: int) -> None:
        self.process = Process(f"server{number}", host="h", pid=number)
        self.port = world.port(self.process)
        self._world = world
        self._instant = f"20260102{number:02}0000000"
        self._acked: list[str] = []
        self._waited_s = 0.0
        self._objects_max = 0
        self._statistics: MarkerStatistics | None = None

    async def serve(self) -> None:
        async with open_marker_engine(self.port) as engine, trio.open_nursery() as requests:
            directory = engine.directory(self._instant)
            for number, moment in enumerate(self._arrivals()):
                await trio.sleep_until(moment)
                requests.start_soon(self._request, directory, number)
                if number % 4 == 0:
                    self._objects_max = max(self._objects_max, len(self._world._objects.data))
                    self._statistics = engine.statistics()

    def _arrivals(self) -> Iterator[float]:
        moment, setting = self._world._kernel.now, self._world.setting
        while True:
            moment += self._world._chance.expovariate(setting.rate / setting.names)
            yield moment

    async def _request(self, directory: MarkerDirectory, number: int) -> None:
        asked_at = trio.current_time()
        paths = [f"day={name:03}/{number:09}.parquet" for name in range(self._world.setting.names)]
        await directory.create(*paths)
        self._waited_s += len(paths) * (trio.current_time() - asked_at)
        self._acked += paths

    async def succeed(self) -> Hour:
        """What a successor finds, and removes."""
        process = Process("successor", host="h", pid=99)
        async with open_marker_engine(self._world.port(process)) as engine:
            directory = engine.directory(self._instant)
            found = {name.path for name in await directory.names()}
            await directory.delete()
        assert self._statistics is not None
        return Hour(
            markers=len(self._acked),
            marker_bytes=sum(len(f"{path}.marker.CREATE\n") for path in self._acked),
            lost=len(set(self._acked) - found),
            objects_max=self._objects_max,
            ack_s=self._waited_s / len(self._acked),
            resident_mib=_resident_mib(),
            statistics=self._statistics,
        )


def _resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.twelve_hours")
    parser.add_argument("--rate", type=float, default=72.0, help="markers a second (default: %(default)s)")
    parser.add_argument("--names", type=int, default=36, help="markers in one request (default: %(default)s)")
    parser.add_argument("--hours", type=int, default=12, help="default: %(default)s")
    parser.add_argument("--put-s", type=float, default=0.03, help="median time of a put (default: %(default)s)")
    options = parser.parse_args()
    world = TwelveHours(Setting(hours=options.hours, rate=options.rate, names=options.names, put_s=options.put_s))
    hours = world.play()
    console = Console(highlight=False)
    columns = ("hour", "markers", "lost", "puts/s", "hedges", "merges", "objects", "bytes ratio", "ack ms", "MiB")
    table = Table(
        *columns, title=f"{options.rate:g} markers a second by {options.names}, puts of {1000 * options.put_s:g} ms"
    )
    for number, hour in enumerate(hours, start=1):
        counts = hour.statistics
        table.add_row(
            str(number), f"{hour.markers:,}", str(hour.lost), f"{counts.puts / HOUR_S:.1f}", f"{counts.hedges:,}",
            f"{counts.merges:,}", str(hour.objects_max), f"{hour.bytes_ratio:.2f}", f"{1000 * hour.ack_s:.1f}",
            f"{hour.resident_mib:.0f}",
        )  # fmt: skip
    console.print(table)
    return 1 if any(hour.lost for hour in hours) else 0


if __name__ == "__main__":
    sys.exit(main())
