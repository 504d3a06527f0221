"""Requests and markers that a service acks per second, on a store in memory, with its clients in other processes."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tallymark.bench.load import Load, run_load
from tallymark.bench.markers.sides import ServedSide, instant
from tallymark.bench.markers.targets import OurClient, OurService
from tallymark.bench.results import Table, column, micros, number, seconds

REQUESTS_BAR, MARKERS_BAR = 15_000, 100_000
"""Per second: requests of one marker over 32 connections, and markers where a request has 16."""

PUT_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    title: str
    opens: type
    load: Load
    names: int = 1


CASES = (
    Case(
        title="32 connections, 16 requests in flight, 1 marker each",
        opens=OurService,
        load=Load(connections=32, processes=4, inflight=16),
    ),
    Case(
        title="32 connections, 16 requests in flight, 16 markers each",
        opens=OurService,
        load=Load(connections=32, processes=4, inflight=16),
        names=16,
    ),
    Case(
        title="4 clients of tasks, 16 threads each, 16 markers per request",
        opens=OurClient,
        load=Load(connections=4, processes=4, inflight=16),
        names=16,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputRow:
    title: str = column("")
    markers_s: float = column("markers/s", number)
    requests_s: float = column("requests/s", number)
    puts_s: float = column("puts/s", number)
    p50_s: float = column("median ack", seconds)
    p99_s: float = column("99 %", seconds)
    cpu_us_request: float = column("CPU/request", micros)
    cpu_us_marker: float = column("CPU/marker", micros)
    caller_cpu_us: float = column("callers' CPU", micros)


def table(length_s: float = 10.0, cases: Sequence[Case] = CASES) -> Table:
    title = (
        f"acks per second of a service, a put takes {seconds(PUT_S)}; bars: {REQUESTS_BAR:,} requests, "
        f"{MARKERS_BAR:,} markers of requests with 16"
    )
    return Table(title=title, rows=[measure(case, length_s) for case in cases])


def measure(case: Case, length_s: float) -> ThroughputRow:
    """Block for about ``length_s``.

    Raises:
        ChildFailed: the service or a client has ended early.
    """
    load = replace(case.load, seconds=length_s, warm_up_s=length_s / 5)
    with tempfile.TemporaryDirectory() as folder:
        side = ServedSide(name="throughput", store={"put_s": PUT_S}, logs=Path(folder), opens=case.opens)
        with side.opened() as opened:
            target = {**opened.target(instant(1)), "names": case.names}
            readings = []
            seen = run_load(target, load, Path(folder), counting=lambda _: readings.append(opened.reading()))
            first, last = readings[0], opened.reading()
    served, durable = last["served"] - first["served"], last["durable"] - first["durable"]
    cpu_us = (last["cpu_s"] - first["cpu_s"]) * 1e6
    return ThroughputRow(
        title=case.title,
        markers_s=seen.rate * case.names,
        requests_s=seen.rate,
        puts_s=(last["store_puts"] - first["store_puts"]) / seen.counted_s,
        p50_s=seen.latency.p50_s,
        p99_s=seen.latency.p99_s,
        cpu_us_request=cpu_us / served,
        cpu_us_marker=cpu_us / durable,
        caller_cpu_us=seen.caller_cpu_s / (seen.answered * case.names) * 1e6,
    )


if __name__ == "__main__":
    from tallymark.bench.command import print_table

    print_table(table())
