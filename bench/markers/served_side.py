"""Ours: a driver's service, asked by the protocol of its tasks."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tallymark.bench.markers.load import Seen
from tallymark.bench.markers.place import MarkerPlace
from tallymark.bench.markers.process import ProcessReading
from tallymark.bench.markers.side import OVER_CONNECTIONS, Left, Spent
from tallymark.bench.markers.talk import Address
from tallymark.bench.views.child import Child, child

_SERVER = "tallymark.bench.markers.server"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSide:
    name: str = "ours"
    title: str = "Tallymark, batched"
    place: MarkerPlace
    logs: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of ``MarkerSettings``, where they are not the defaults."""

    is_filled = True

    @contextmanager
    def opened(self) -> Iterator["_OpenServed"]:
        with child(_SERVER, self.logs / f"{self.name}.log") as driver:
            address = driver.ask({**self.place.told(), "settings": dict(self.settings)})
            yield _OpenServed(driver, address)


@dataclass(frozen=True, slots=True)
class _OpenServed:
    driver: Child
    server: Mapping[str, Any]

    def address(self, instant: str) -> Address:
        key = self.driver.ask({"key": {"instant": instant}})
        return {"program": OVER_CONNECTIONS, "talk": "ours", "instant": instant, **self.server, **key}

    def spent(self, _instant: str) -> Spent:
        engine, system = self.driver.ask({"reading": {}}), ProcessReading.of(self.driver.process.pid)
        return Spent(
            cpu_s=system.cpu_s, puts=engine["puts"], sent_bytes=engine["put_bytes"], disk_bytes=system.disk_bytes
        )

    def to_store(self, spent: Spent, _found: Seen) -> Spent:
        return spent

    def settle(self, instant: str) -> Left:
        return Left(**self.driver.ask({"settle": {"instant": instant}}))

    def delete(self, instant: str) -> float:
        took_s: float = self.driver.ask({"delete": {"instant": instant}})["deleted_s"]
        return took_s
