"""Which settings of Hudi's server give the lowest mean ack: the intervals first, then threads at the best of those."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tallymark.bench.markers.beside import first_and_then
from tallymark.bench.markers.effort import Effort
from tallymark.bench.markers.hudi_side import HudiSide, Tuning


@dataclass(slots=True)
class Search:
    """Of a server on a folder of this machine."""

    folder: Path
    logs: Path
    effort: Effort
    tell: Callable[[str], None]
    mean_s: dict[Tuning, float] = field(default_factory=dict)
    """Acks of what was tried, under the load of few callers."""

    def side(self, tuning: Tuning) -> HudiSide:
        name = f"hudi-{tuning.interval_ms}-{tuning.threads}"
        return HudiSide(name=name, folder=self.folder / name, logs=self.logs, tuning=tuning)

    def best(self) -> Tuning:
        """Its own defaults take part. Raises OSError, SubprocessError or TallymarkError where there is no server."""
        default = Tuning()
        self._try([default, *(replace(default, interval_ms=each) for each in self.effort.intervals_ms)])
        found = min(self.mean_s, key=self.mean_s.__getitem__)
        self._try(replace(found, threads=each) for each in self.effort.threads)
        return min(self.mean_s, key=self.mean_s.__getitem__)

    def _try(self, tunings: Iterable[Tuning]) -> None:
        for tuning in tunings:
            side = self.side(tuning)
            self.tell(f"markers: trying {side.title}")
            with side.opened() as opened:
                self.mean_s[tuning] = first_and_then(opened, self.effort, self.effort.trial, self.logs).acks.mean_s
