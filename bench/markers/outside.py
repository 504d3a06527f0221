"""Acks by ``tallymark serve`` beside acks by the service in a driver, in blocks that alternate.

An ack of the former follows a read of its claim, so that on a store whose reads take as long as its puts it takes at
least twice as long; the latter relies on the driver's own heartbeat. Whole jobs wait for neither: tasks request names
ahead of their files.
"""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import anyio
import anyio.to_thread
import pyarrow as pa

from tallymark.bench.load import Load, Seen, Target, run_load
from tallymark.bench.markers.sides import ServedSide, instant
from tallymark.bench.markers.targets import OurService, name_of
from tallymark.bench.results import Table, column, number, seconds
from tallymark.bench.serve_process import serve_process
from tallymark.bench.stores import MarkerStore, far, near
from tallymark.engine.settings import SharedServiceSettings
from tallymark.engine.table import open_table

COLUMNS: list[tuple[str, pa.DataType]] = [("event_date", pa.string()), ("rows", pa.int64())]

LOADS = (
    Load(connections=1, processes=1, inflight=1),
    Load(connections=4, processes=1, inflight=16, rate=200.0),
    Load(connections=16, processes=1, inflight=16),
)
"""One request after the other; at random moments; and as fast as 256 of them are answered."""

ROUNDS, LENGTH_S = 7, 2.0

LATENCY_S, PUTS_PER_S = 0.03, 3500.0
"""Of the S3 stand-in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideRow:
    title: str = column("")
    driver_s: float = column("mean ack, in the driver", seconds)
    outside_s: float = column("tallymark serve", seconds)
    ratio: float = column("ratio of the means", lambda value: f"{value:.2f}")
    driver_p99_s: float = column("p99, in the driver", seconds)
    outside_p99_s: float = column("tallymark serve", seconds)
    driver_per_s: float = column("acks/s, in the driver", number)
    outside_per_s: float = column("tallymark serve", number)


def table(rounds: int = ROUNDS, length_s: float = LENGTH_S, loads: Sequence[Load] = LOADS) -> Table:
    """Return the measured rows. Raises ChildFailed: a service has ended early."""
    return anyio.run(_table, rounds, length_s, loads, backend="trio")


async def _table(rounds: int, length_s: float, loads: Sequence[Load]) -> Table:
    rows: list[OutsideRow] = []
    with near(Path(tempfile.gettempdir())) as disk, far(LATENCY_S, PUTS_PER_S) as stand_in:
        for store in (disk, stand_in):
            rows += await _measured(
                store, rounds, [replace(load, seconds=length_s, warm_up_s=length_s / 4) for load in loads]
            )
    return Table(title=f"acks outside of the driver, median of {rounds} pairs of blocks", rows=rows)


async def _measured(store: MarkerStore, rounds: int, loads: Sequence[Load]) -> list[OutsideRow]:
    with tempfile.TemporaryDirectory() as folder, serve_process(store.url, store.options, Path(folder)) as served:
        logs = Path(folder)
        inside = ServedSide(name="driver", store={**store.fields(), "table": f"{store.url}-driver"}, logs=logs)
        async with open_job(store, served.url) as outside:
            with inside.opened() as opened:
                return [
                    await anyio.to_thread.run_sync(_row, store, opened.target(instant(at)), outside, load, rounds, logs)
                    for at, load in enumerate(loads)
                ]


def _row(store: MarkerStore, inside: Target, outside: Target, load: Load, rounds: int, logs: Path) -> OutsideRow:
    pairs: list[tuple[Seen, Seen]] = []
    for turn in range(rounds):
        targets = (inside, outside) if turn % 2 else (outside, inside)
        seen = {id(target): run_load(target, load, logs) for target in targets}
        pairs.append((seen[id(inside)], seen[id(outside)]))
    return OutsideRow(
        title=f"{store.where}; {load}",
        driver_s=median(one.mean_s for one, _ in pairs),
        outside_s=median(other.mean_s for _, other in pairs),
        ratio=median(other.mean_s / one.mean_s for one, other in pairs),
        driver_p99_s=median(one.latency.p99_s for one, _ in pairs),
        outside_p99_s=median(other.latency.p99_s for _, other in pairs),
        driver_per_s=median(len(one.latency_s) / load.seconds for one, _ in pairs),
        outside_per_s=median(len(other.latency_s) / load.seconds for _, other in pairs),
    )


@asynccontextmanager
async def open_job(store: MarkerStore, url: str) -> AsyncIterator[Target]:
    """Yield what the load generator needs for a job that is open for the block, and writes nothing."""
    table = open_table(store.url, options=store.options)
    service = SharedServiceSettings(url=url)
    async with table.write(
        schema=pa.schema(COLUMNS), mode="append", partition_by=["event_date"], service=service
    ) as job:
        address = job.ticket.service
        assert address is not None, "the service has answered"
        yield {
            "open": name_of(OurService),
            "instant": job.instant,
            "host": address.host,
            "port": address.port,
            "job_key": address.job_key.hex(),
            "job": address.job,
        }


if __name__ == "__main__":
    from tallymark.bench.command import print_table

    print_table(table())
