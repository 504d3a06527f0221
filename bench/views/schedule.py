"""When an open loop asks: at moments that do not depend on how long answers take."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """So many look-ups a second, at random moments, by connections that know nothing of each other."""

    rate: float = 2000.0
    """Look-ups a second, of all connections together."""
    connections: int = 32
    processes: int = 4
    """That the connections are in, as many in each."""
    seconds: float = 20.0
    warm_up_s: float = 5.0
    """Before that: asked in the same way, and not counted."""

    def __post_init__(self) -> None:
        assert self.connections % self.processes == 0, "as many connections in each process"

    def __str__(self) -> str:
        return (
            f"{self.rate:,.0f} look-ups/s over {self.connections} connections of {self.processes} processes for "
            f"{self.seconds:g} s, after {self.warm_up_s:g} s of the same"
        )

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def connections_each(self) -> int:
        """Of one process."""
        return self.connections // self.processes

    def dues(self, random: Random) -> Iterator[float]:
        """Of one connection, the seconds since the beginning of the warm-up at which it asks: a Poisson process."""
        due = random.expovariate(self.rate / self.connections)
        while due < self.warm_up_s + self.seconds:
            yield due
            due += random.expovariate(self.rate / self.connections)
