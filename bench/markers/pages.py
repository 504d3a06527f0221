"""Times of pages and of REST by ``tallymark serve``: of a table with many files, and of a fleet with many tables.

Tables are their commit log only (``made_table``), read from a checkpoint, as writers leave them.
"""

import tempfile
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from statistics import median
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import psutil

from tallymark.backends import open_backend
from tallymark.backends.concurrently import concurrently
from tallymark.bench.made_table import MadeTable, TableShape
from tallymark.bench.markers.outside import LATENCY_S, PUTS_PER_S
from tallymark.bench.results import Table, column, number, seconds, size
from tallymark.bench.serve_process import ServeProcess, serve_process
from tallymark.bench.stores import MarkerStore, far, near
from tallymark.engine.serve.rest.lake_table import id_of
from tallymark.engine.serve.roots import place_of
from tallymark.engine.table import open_table

LARGE_BAR_S, FLEET_BAR_S = 1.0, 2.0
"""Of the first page of a table from a warm view; of the page of all tables."""

COMMITTED = 100
"""Files of one more commit to the large table: to partitions at random."""

MADE_AT_ONCE = 16

UNREAD = b"its storage has not answered yet"
"""What a page of all tables has of one that was not read in time."""

TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    large: TableShape = field(default_factory=lambda: TableShape(files=1_000_000, partitions=200))
    small: TableShape = field(default_factory=lambda: TableShape(files=100, partitions=10, commits=5))
    tables: int = 200
    processes: int = 6
    """Started one after the other, each with a first page."""
    repeats: int = 5
    poll_s: float = 10.0
    """``PageSettings.poll_s``: time for which summaries of tables are used again."""


QUICK = Pages(large=TableShape(files=1_000, partitions=20, commits=5), tables=4, processes=2, repeats=1, poll_s=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRow:
    title: str = column("")
    took_s: float = column("median", seconds)
    worst_s: float = column("slowest", seconds)
    memory: float = column("memory after it", size)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    title: str = column("")
    took_s: float = column("median", seconds)
    worst_s: float = column("slowest", seconds)
    unread: int = column("tables not read in time, at most", number)
    whole_s: float = column("until all are read", seconds)
    memory: float = column("memory after it", size)


def _get(served: ServeProcess, path: str) -> tuple[float, bytes]:
    """Return how long the answer took, by a new connection, and its body."""
    assert served.page is not None
    connection, started = HTTPConnection(urlsplit(served.page).netloc, timeout=TIMEOUT_S), time.perf_counter()
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    assert response.status == 200, body[:1000]
    return time.perf_counter() - started, body


def _memory_bytes(served: ServeProcess) -> int:
    """Return the resident memory of the process of pages."""
    [process] = psutil.Process(served.pid).children()
    found: int = process.memory_info().rss
    return found


def large_table(pages: Pages | None = None) -> Table:
    """Return the measured rows. Raises ServeFailed."""
    pages = pages or Pages()
    rows = anyio.run(_large_rows, pages, backend="trio")
    title = f"pages of a table, {pages.large.label}; bar: {seconds(LARGE_BAR_S)} from a warm view"
    return Table(title=title, rows=rows)


async def _large_rows(pages: Pages) -> list[LargeRow]:
    seen: dict[str, list[tuple[float, int]]] = {}
    with near(Path(tempfile.gettempdir())) as store:
        made = await _make(store, pages.large)
        page = f"/tables/{id_of(place_of(store.url))}"
        files = f"/v1{page}/files?limit=100"
        for turn in range(pages.processes):
            with tempfile.TemporaryDirectory() as folder, _served(store, Path(folder), pages) as served:

                async def take(title: str, path: str, served: ServeProcess = served) -> None:
                    took_s, _ = await anyio.to_thread.run_sync(_get, served, path)
                    seen.setdefault(title, []).append((took_s, _memory_bytes(served)))

                if turn % 2:
                    await take("page of all tables, the first of a new process", "/")
                    await take("page, the first after that", page)
                else:
                    await take("page, the first of a new process", page)
                for again in range(pages.repeats):
                    random = Random(turn * pages.repeats + again)  # noqa: S311 no secret
                    for what, path in (("page", page), ("100 files by REST", files)):
                        await made.append(COMMITTED, random)
                        await take(f"{what}, after a commit of {COMMITTED} files", path)
                        await take(f"{what}, nothing has changed", path)
    return [
        LargeRow(
            title=title,
            took_s=median(took_s for took_s, _ in found),
            worst_s=max(found)[0],
            memory=max(memory for _, memory in found),
        )
        for title, found in seen.items()
    ]


def fleet_table(pages: Pages | None = None) -> Table:
    """Return the measured rows. Raises ServeFailed."""
    pages = pages or Pages()
    rows = anyio.run(_fleet_rows, pages, backend="trio")
    title = f"the page of {pages.tables} tables, {pages.small.label} each; bar: {seconds(FLEET_BAR_S)}"
    return Table(title=title, rows=rows)


async def _fleet_rows(pages: Pages) -> list[FleetRow]:
    rows: list[FleetRow] = []
    with near(Path(tempfile.gettempdir())) as disk, far(LATENCY_S, PUTS_PER_S) as stand_in:
        for store in (disk, stand_in):
            places = [MarkerStore(f"{store.url}/{at}", store.where, store.options) for at in range(pages.tables)]
            await concurrently(partial(_make, shape=pages.small), places, limit=MADE_AT_ONCE)
            rows += await anyio.to_thread.run_sync(_fleet_of, store, pages)
    return rows


def _fleet_of(store: MarkerStore, pages: Pages) -> list[FleetRow]:
    seen: dict[str, list[tuple[float, int, float, int]]] = {}
    for _ in range(pages.processes):
        with tempfile.TemporaryDirectory() as folder, _served(store, Path(folder), pages) as served:
            for title in ("the first of a new process", "within its interval", "after its interval"):
                if title == "after its interval":
                    time.sleep(1.1 * pages.poll_s)  # noqa: TID251 in a thread
                started = time.perf_counter()
                took_s, body = _get(served, "/")
                unread = left = body.count(UNREAD)
                while left:
                    left = _get(served, "/")[1].count(UNREAD)
                whole_s = time.perf_counter() - started
                seen.setdefault(title, []).append((took_s, unread, whole_s, _memory_bytes(served)))
    return [
        FleetRow(
            title=f"{store.where}; {title}",
            took_s=median(each[0] for each in found),
            worst_s=max(each[0] for each in found),
            unread=max(each[1] for each in found),
            whole_s=median(each[2] for each in found),
            memory=max(each[3] for each in found),
        )
        for title, found in seen.items()
    ]


async def _make(store: MarkerStore, shape: TableShape) -> MadeTable:
    made = MadeTable(open_backend(store.url, options=store.options), shape, projected=False)
    await made.make()
    await open_table(store.url, options=store.options).checkpoint()
    return made


def _served(store: MarkerStore, folder: Path, pages: Pages) -> AbstractContextManager[ServeProcess]:
    config = folder / "serve.toml"
    config.write_text(f"[page]\npoll_s = {pages.poll_s}\n")
    return serve_process(store.url, store.options, folder, "--config", str(config), has_pages=True)


if __name__ == "__main__":
    from tallymark.bench.command import print_table

    print_table(large_table())
    print_table(fleet_table())
