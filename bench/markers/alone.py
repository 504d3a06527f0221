"""Ours alone, in the measurements of this room that are also programs by themselves."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tallymark.bench.markers.effort import Effort
from tallymark.bench.markers.model import Outcome, loads, simulate
from tallymark.bench.markers.pace_cost import LOADS as PACE_LOADS
from tallymark.bench.markers.pace_cost import PaceCost, PaceLoad, worst_of
from tallymark.bench.markers.recovery import Recovery, measure_recovery
from tallymark.bench.markers.throughput import LOADS, Throughput, measure_throughput


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """Empty where a part was not asked for."""

    recoveries: tuple[Recovery, ...] = ()
    throughputs: tuple[Throughput, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    costs: tuple[PaceCost, ...] = ()
    """The worst of several runs of each load."""

    def document(self) -> dict[str, Any]:
        return {
            "recovery": [{**asdict(found), "beyond_s": found.beyond_s} for found in self.recoveries],
            "throughput": [found.document() for found in self.throughputs],
            "model": [{**asdict(found), "model_ack_s": found.model_ack_s} for found in self.outcomes],
            "pace": [found.document() for found in self.costs],
        }


def alone(parts: Sequence[str], effort: Effort, tell: Callable[[str], None]) -> Alone:
    found = Alone()
    if "recovery" in parts:
        found = replace(found, recoveries=tuple(_recover(count, effort, tell) for count in effort.recovered))
    if "throughput" in parts:
        tell("markers: how many a service acks")
        seconds = effort.throughput_s
        timed = (replace(load, seconds=seconds, warm_up_s=seconds / 5) for load in LOADS)
        found = replace(found, throughputs=tuple(map(measure_throughput, timed)))
    if "model" in parts:
        tell("markers: acks on a virtual clock")
        found = replace(found, outcomes=tuple(map(simulate, loads(effort.flushes))))
    if "pace" in parts:
        found = replace(found, costs=tuple(_cost(load, effort, tell) for load in PACE_LOADS))
    return found


def _cost(load: PaceLoad, effort: Effort, tell: Callable[[str], None]) -> PaceCost:
    tell(f"markers: acks over puts: {load}")
    return worst_of(replace(load, seconds=effort.cost_s, warm_up_s=effort.cost_s / 5), effort.cost_runs)


def _recover(count: int, effort: Effort, tell: Callable[[str], None]) -> Recovery:
    tell(f"markers: recovery of {count:,}")
    return measure_recovery(count, rounds=effort.recoveries)
