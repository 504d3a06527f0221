"""Half a day of a busy marker engine: one job after the other, and a crash an hour. Nothing grows.

Each hour is a job of its own, served by a process of its own, which is killed at the full hour with requests, flushes
and perhaps a merge under way. Its successor reads what it has left, makes sure that no acked marker is missing, deletes
it, and begins the next job. Time is virtual; markers are asked for at random moments (a Poisson process), and puts take
a random time (lognormal).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
import trio

from tallymark.engine.markers import MarkerDirectory, open_marker_engine
from tallymark.engine.markers.statistics import MarkerStatistics
from tests.history import Event, History
from tests.simulation.fault_profile import FaultProfile
from tests.simulation.kernel import Kernel
from tests.simulation.process import Process
from tests.simulation.storage import Objects, Port

pytestmark = pytest.mark.release

HOURS = 12
HOUR_S = 3600.0
REQUESTS_PER_S = 1.0
NAMES = 12
"""Markers in one request: a task asks for all partitions that a batch of its rows touches."""


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
    statistics: MarkerStatistics

    @property
    def bytes_ratio(self) -> float:
        """Bytes written, flushes and merges and repeats, for each byte of markers."""
        return self.statistics.put_bytes / self.marker_bytes


class _Unrecorded(History):
    def record(self, event: Event) -> None:
        """Millions of events would be all that grows."""


class TwelveHours:
    def __init__(self) -> None:
        self.hours: list[Hour] = []
        self._kernel = Kernel(0)
        self._objects = Objects(self._kernel, _Unrecorded(), has_staging=False)
        self._chance = self._kernel.stream("arrivals")

    def play(self) -> Sequence[Hour]:
        self._kernel.run(self._play)
        return self.hours

    async def _play(self) -> None:
        for number in range(HOURS):
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
        return Port(self._kernel, self._objects, process, FaultProfile(put_s=0.03, spread=0.5))


class _Life:
    """One job and its server."""

    def __init__(self, world: TwelveHours, number: int) -> None:
        self.process = Process(f"server{number}", host="h", pid=number)
        self.port = world.port(self.process)
        self._world = world
        self._instant = f"20260102{number:02}0000000"
        self._acked: list[str] = []
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
        moment = self._world._kernel.now
        while True:
            moment += self._world._chance.expovariate(REQUESTS_PER_S)
            yield moment

    async def _request(self, directory: MarkerDirectory, number: int) -> None:
        paths = [f"day={name:03}/{number:09}.parquet" for name in range(NAMES)]
        await directory.create(*paths)
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
            statistics=self._statistics,
        )


def test_in_twelve_hours_with_a_crash_an_hour_objects_bytes_puts_and_names_stay_flat():
    hours = TwelveHours().play()
    assert len(hours) == HOURS
    for hour in hours:
        assert hour.lost == 0
        assert hour.bytes_ratio <= 4
        assert hour.objects_max <= 20 + 20
        assert hour.statistics.durable <= hour.markers + NAMES, "the names of one job, and of no other"
        assert hour.statistics.puts <= 1.2 * HOUR_S
    last, second = hours[-1], hours[1]
    assert abs(last.statistics.puts / second.statistics.puts - 1) < 0.1
    assert abs(last.objects_max - second.objects_max) <= 5
