"""Acks of a job by ``tallymark serve`` while other clients disturb it, in blocks that alternate with quiet ones."""

import resource
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from tallymark.bench.child import Child, child
from tallymark.bench.load import Load, Seen, Target, run_load
from tallymark.bench.loopback import credentials
from tallymark.bench.markers import strangers
from tallymark.bench.markers.outside import open_job
from tallymark.bench.results import Table, column, number, seconds
from tallymark.bench.serve_process import serve_process
from tallymark.bench.stores import near
from tallymark.engine.rpc.server import DESCRIPTOR_SHARE
from tallymark.engine.serve.rest.lake_table import id_of
from tallymark.engine.serve.roots import place_of

LOAD = Load(connections=4, processes=1, inflight=4, rate=200.0)
"""Of the job: markers of 200 files per second."""

ROUNDS, LENGTH_S = 7, 2.0

PAGES_LENGTH = 5
"""Times as long is a block beside pages: browsers refresh each once in it, or twice."""

RESERVED = 500
"""Connections of the service that idle clients leave to others."""

HUNG = "s3://hung"
"""A root whose store accepts connections and never answers."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    title: str
    kind: str
    count: int
    faster: int = 1
    """Times as often do browsers refresh a page as it has them do."""
    length: int = 1
    """Times as long are its blocks."""


def disturbances(part: float = 1.0) -> list[Disturbance]:
    """Return what is tried: of idle connections as many as the descriptors of a process allow, up to 10,000."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    idle = 10_000
    if descriptors != resource.RLIM_INFINITY:
        idle = min(idle, int(descriptors * DESCRIPTOR_SHARE) - RESERVED)
    whole = {
        "idle": (idle, "connections that are idle"),
        "slow": (200, "clients that send a byte per second"),
        "large": (5, "clients that send 32 requests at once and one of 256 KiB, twice per second"),
        "waiting": (200, "requests for a store that does not answer"),
    }
    found = []
    for kind, (most, what) in whole.items():
        count = max(1, int(most * part))
        found.append(Disturbance(f"{count:,} {what}", kind, count))
    return [
        *found,
        Disturbance("10 browsers with a page that is refreshed", "pages", 10, 1, PAGES_LENGTH),
        Disturbance("10 browsers that refresh it ten times as often", "pages", 10, 10, PAGES_LENGTH),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbedRow:
    title: str = column("beside")
    quiet_s: float = column("mean ack, quiet", seconds)
    disturbed_s: float = column("disturbed", seconds)
    ratio: float = column("ratio of the means", lambda value: f"{value:.2f}")
    quiet_p99_s: float = column("p99, quiet", seconds)
    disturbed_p99_s: float = column("disturbed", seconds)
    p99_ratio: float = column("ratio of the p99", lambda value: f"{value:.2f}")
    acks: int = column("acks, disturbed", number)
    pages: int = column("pages received", number)


def table(rounds: int = ROUNDS, length_s: float = LENGTH_S, tried: Sequence[Disturbance] | None = None) -> Table:
    """Return the measured rows. Raises ChildFailed: a process has ended early."""
    tried = disturbances() if tried is None else tried
    rows = anyio.run(_rows, rounds, length_s, tried, backend="trio")
    return Table(title=f"acks of a job beside other clients, median of {rounds} pairs of blocks", rows=rows)


async def _rows(rounds: int, length_s: float, tried: Sequence[Disturbance]) -> list[DisturbedRow]:
    rows: list[DisturbedRow] = []
    for has_pages in (False, True):
        chosen = [each for each in tried if (each.kind == "pages") is has_pages]
        rows += await _measured(rounds, length_s, chosen, has_pages=has_pages) if chosen else []
    return rows


async def _measured(
    rounds: int, length_s: float, tried: Sequence[Disturbance], *, has_pages: bool
) -> list[DisturbedRow]:
    load = replace(LOAD, seconds=length_s, warm_up_s=length_s / 4)
    with (
        tempfile.TemporaryDirectory() as name,
        near(Path(tempfile.gettempdir())) as store,
        _silent() as endpoint,
        serve_process(
            store.url,
            store.options,
            Path(name),
            *(() if has_pages else ("--config", _config(Path(name), endpoint))),
            has_pages=has_pages,
        ) as served,
        child(strangers.__name__, Path(name) / "strangers.log") as others,
    ):
        async with open_job(store, served.url) as job:
            table = f"/tables/{id_of(place_of(store.url))}"
            asked = {
                "port": served.hudi_port if served.page is None else urlsplit(served.page).port,
                "folder": f"{HUNG}/t/.hoodie/.temp/1",
                "pages": ["/", table, f"{table}/jobs/{job['instant']}"],
            }
            return [
                await anyio.to_thread.run_sync(_row, job, others, each, asked, load, rounds, Path(name))
                for each in tried
            ]


def _row(
    job: Target, others: Child, each: Disturbance, asked: Mapping[str, Any], load: Load, rounds: int, logs: Path
) -> DisturbedRow:
    load = replace(load, seconds=each.length * load.seconds, warm_up_s=each.length * load.warm_up_s)
    pairs: list[tuple[Seen, Seen]] = []
    pages = 0
    for _ in range(rounds):
        quiet = run_load(job, load, logs)
        others.ask({**asked, "kind": each.kind, "count": each.count, "faster": each.faster})
        pairs.append((quiet, run_load(job, load, logs)))
        pages += others.ask({})["pages"]
    return DisturbedRow(
        title=each.title,
        quiet_s=median(quiet.mean_s for quiet, _ in pairs),
        disturbed_s=median(disturbed.mean_s for _, disturbed in pairs),
        ratio=median(disturbed.mean_s / quiet.mean_s for quiet, disturbed in pairs),
        quiet_p99_s=median(quiet.latency.p99_s for quiet, _ in pairs),
        disturbed_p99_s=median(disturbed.latency.p99_s for _, disturbed in pairs),
        p99_ratio=median(disturbed.latency.p99_s / quiet.latency.p99_s for quiet, disturbed in pairs),
        acks=sum(disturbed.answered for _, disturbed in pairs),
        pages=pages,
    )


@contextmanager
def _silent() -> Iterator[str]:
    """Yield the URL of a server that accepts connections, and never reads."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def _config(folder: Path, endpoint: str) -> str:
    """Write a configuration with the root that hangs, and most connections for idle ones; return its path."""
    provider = f"{credentials.__module__}:{credentials.__name__}"
    file = folder / "serve.toml"
    file.write_text(
        f'[[roots]]\nurl = "{HUNG}"\nstorage = {{endpoint = "{endpoint}", credentials = "{provider}"}}\n'
        "[jobs]\nconnection_count = 200\ndriver_count = 50\n[[hudi]]\nconnection_count = 12000\n"
    )
    return str(file)


if __name__ == "__main__":
    from tallymark.bench.command import print_table

    print_table(table())
