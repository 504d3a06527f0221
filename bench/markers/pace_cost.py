"""What the engine adds to a put: the mean ack over the mean put of a store in memory, on the real clock.

``quiet`` sends one request after the other. Under load, requests of one marker each arrive at random moments. The
arithmetic of paced group commit gives 1 for the first and at most 1.125 for the second, with at most four flushes
started in the time of a put; the rest is the engine's own. By the network, the service is another process: quiet
requests are those of the client that tasks use, requests under load use its protocol. Otherwise the engine runs in the
process of its callers.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tallymark.bench.load import Load, Seen, Target, run_load
from tallymark.bench.markers.model import ack_s
from tallymark.bench.markers.sides import ServedSide, instant
from tallymark.bench.markers.targets import OurClient, OurService, OurTask, name_of
from tallymark.bench.results import Table, column, number, seconds
from tallymark.engine.markers.pace import PUTS_PER_PUT_TIME

RATE = 1000.0

CONNECTIONS, INFLIGHT = 4, 64
"""Of the loads by the network: 1,000 requests per second that take 100 ms are 112 in flight."""

QUIET_BAR, LOADED_BAR = 1.03, 1.15

RUNS = 5
"""The worst of these is shown."""

CASES = tuple((put_s, rate) for put_s in (0.002, 0.03, 0.1) for rate in (None, RATE))

FAR_S = 0.03
"""Puts that take at least this long are requested by the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceRow:
    title: str = column("")
    acks: int = column("acks")
    ack_s: float = column("mean ack", seconds)
    put_s: float = column("mean put", seconds)
    ratio: float = column("ratio", lambda value: f"{value:.3f}")
    bar: float = column("bar")
    model_ratio: float = column("by the model", lambda value: f"{value:.3f}")
    puts_per_s: float = column("puts/s", number)


def table(length_s: float = 5.0, runs: int = RUNS) -> Table:
    title = f"mean acks over mean puts on the real clock, the worst of {runs} runs"
    rows = [max((measure(*case, length_s) for _ in range(runs)), key=lambda row: row.ratio) for case in CASES]
    return Table(title=title, rows=rows)


def measure(put_s: float, rate: float | None, length_s: float) -> PaceRow:
    """Block for about ``length_s``.

    Raises:
        ChildFailed: the service or the caller has ended early.
    """
    is_far = put_s >= FAR_S
    connections, inflight = (1, 1) if rate is None else (CONNECTIONS, INFLIGHT)
    load = Load(
        connections=connections, processes=1, inflight=inflight, rate=rate, seconds=length_s, warm_up_s=length_s / 5
    )
    with tempfile.TemporaryDirectory() as folder:
        seen, puts, puts_s = (_far if is_far else _near)(put_s, load, Path(folder))
    how = "quiet" if rate is None else f"{rate:,.0f} requests/s"
    return PaceRow(
        title=f"a put takes {put_s * 1000:g} ms, {how}, {'by the network' if is_far else 'in process'}",
        acks=len(seen.latency_s),
        ack_s=seen.mean_s,
        put_s=puts_s / puts,
        ratio=seen.mean_s / (puts_s / puts),
        bar=QUIET_BAR if rate is None else LOADED_BAR,
        model_ratio=1.0 if rate is None else ack_s(rate, put_s / PUTS_PER_PUT_TIME, put_s) / put_s,
        puts_per_s=puts / (load.seconds + load.warm_up_s),
    )


def _near(put_s: float, load: Load, logs: Path) -> tuple[Seen, float, float]:
    target: Target = {"open": name_of(OurTask), "mark": "inside", "instant": instant(1), "put_s": put_s}
    seen = run_load(target, load, logs)
    return seen, seen.extra["puts"], seen.extra["puts_s"]


def _far(put_s: float, load: Load, logs: Path) -> tuple[Seen, float, float]:
    side = ServedSide(
        name="pace", store={"put_s": put_s}, logs=logs, opens=OurClient if load.rate is None else OurService
    )
    with side.opened() as opened:
        seen = run_load(opened.target(instant(1)), load, logs)
        counted = opened.reading()
    return seen, counted["store_puts"], counted["store_puts_s"]


if __name__ == "__main__":
    from tallymark.bench.command import print_table

    print_table(table())
