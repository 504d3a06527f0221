"""Ours alone, for people."""

from collections.abc import Iterator

from rich.table import Table

from tallymark.bench.markers.alone import Alone
from tallymark.bench.markers.model import Outcome
from tallymark.bench.markers.pace_cost import PaceCost
from tallymark.bench.markers.page import table
from tallymark.bench.markers.recovery import Recovery
from tallymark.bench.markers.throughput import Throughput
from tallymark.bench.report import seconds

BEYOND_BAR_S = 1.0
"""What a service may take to know 165,000 markers, beside reading their bytes."""

MARKERS_BAR, REQUESTS_BAR = 100_000, 15_000
"""A second, where clients join markers; and of requests of one marker each."""

MODEL_BAR = 0.03
"""By how much a mean ack may differ from the model."""


def tables(found: Alone) -> Iterator[Table]:
    if found.recoveries:
        yield recoveries(found.recoveries)
    if found.throughputs:
        yield throughputs(found.throughputs)
    if found.outcomes:
        yield outcomes(found.outcomes)
    if found.costs:
        yield costs(found.costs)


def recoveries(found: tuple[Recovery, ...]) -> Table:
    page = table(
        f"until a service knows what a crashed one has marked, {seconds(found[0].request_s)} a request in memory; "
        f"bar: {seconds(BEYOND_BAR_S)} beyond reading for 165,000",
        ("segments", "bytes", "recovery", "reading them", "beyond", "CPU", "kept for one", "peak"),
        first="markers",
    )
    for each in found:
        page.add_row(
            f"{each.markers:,}",
            f"{each.segments:,}",
            f"{each.bytes / 1e6:,.1f} MB",
            *(seconds(value) for value in (each.seconds, each.reading_s, each.beyond_s, each.cpu_s)),
            *(f"{value:,.0f} B" for value in (each.memory_bytes, each.peak_bytes)),
        )
    return page


def throughputs(found: tuple[Throughput, ...]) -> Table:
    page = table(
        f"what a service acks a second, its clients in other processes; bars: {MARKERS_BAR:,} markers joined, "
        f"{REQUESTS_BAR:,} requests of one",
        ("markers/s", "requests/s", "puts/s", "median ack", "99 %", "CPU a request", "a marker", "callers' CPU"),
    )
    for each in found:
        load = each.load
        who = f"{load.connections} connections" if load.kind == "raw" else f"{load.processes} x {load.threads} threads"
        page.add_row(
            f"{who}, {load.inflight} in flight, {load.names} a request",
            *(f"{value:,.0f}" for value in (each.markers_s, each.requests_s, each.flushes_s)),
            *(seconds(value) for value in (each.ack.p50_s, each.ack.p99_s)),
            *(f"{value:,.1f} µs" for value in (each.server_cpu_us, each.server_cpu_us_marker)),
            f"{each.client_cpu_us_marker:,.1f} µs",
        )
    return page


def outcomes(found: tuple[Outcome, ...]) -> Table:
    page = table(
        "mean acks on a virtual clock without merges and second copies, beside the arithmetic of paced group commit; "
        f"bar: within {MODEL_BAR:.0%}",
        ("arrivals/s", "mean put", "mean ack", "by the model", "off", "puts/s", "by the model", "off"),
    )
    for each in found:
        page.add_row(
            f"{each.load.shape} puts of {seconds(each.load.put_s)}",
            f"{each.load.rate:,.0f}",
            *(seconds(value) for value in (each.put_s, each.ack_s, each.model_ack_s)),
            f"{each.ack_off:+.1%}",
            f"{each.puts_per_s:,.1f}",
            f"{each.model_puts_per_s:,.1f}",
            f"{each.puts_off:+.1%}",
        )
    return page


def costs(found: tuple[PaceCost, ...]) -> Table:
    page = table(
        "mean acks over mean puts on the real clock, the worst of several runs; the least possible is the model's with "
        "what a program without an engine adds to a put here",
        ("acks", "mean ack", "mean put", "ratio", "bar", "least possible", "puts/s", "puts begun in one's time"),
    )
    for each in found:
        page.add_row(
            str(each.load),
            f"{each.acks:,}",
            seconds(each.ack_s),
            seconds(each.put_s),
            f"{each.ratio:.3f}",
            f"{each.load.ratio_max:g}",
            f"{each.least_ratio:.3f}",
            f"{each.puts_per_s:,.1f}",
            f"{each.puts_per_put:.2f}",
        )
    return page
