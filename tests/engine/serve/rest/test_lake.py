"""The tables of a lake in memory: what a query costs, and stores that do not answer."""

from collections import Counter
from collections.abc import MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tallymark.backends.contract import Backend
from tallymark.backends.local import LocalBackend
from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.meter import RequestClass, RequestMeter
from tallymark.engine.documents.summary import SummaryDocument
from tallymark.engine.errors import Overloaded
from tallymark.engine.serve.memory import TABLE_BYTES, Memory
from tallymark.engine.serve.page.pages import PageContext, Pages
from tallymark.engine.serve.rest.lake import Lake
from tallymark.engine.serve.rest.lake_table import LakeTable
from tallymark.engine.serve.rest.live_jobs import LiveJobs
from tallymark.engine.serve.rest.service import lake_app
from tallymark.engine.serve.roots import Root, Roots
from tallymark.engine.serve.settings import PageSettings
from tallymark.engine.settings import ViewSettings
from tests.engine.serve.rest.scene import SECRET, client_of, path_of, write


def opened(folder: Path) -> tuple[LakeTable, RequestMeter]:
    meter = RequestMeter()
    backend = MeasuredBackend(LocalBackend(folder), meter)
    return LakeTable(str(folder), backend, None, ViewSettings(), LiveJobs()), meter


def requests(meter: RequestMeter, before: Counter[RequestClass]) -> Counter[RequestClass]:
    found = Counter({each.request_class: each.count for each in meter.statistics().classes})
    spent = found - before
    before.update(spent)
    return spent


async def test_a_look_at_an_idle_table_costs_what_the_guide_states(tmp_path):
    await write(tmp_path / "flights", 1)
    table, meter = opened(tmp_path / "flights")
    await table.summary()
    await table.version()
    spent = Counter[RequestClass]()
    requests(meter, spent)
    await table.summary()
    assert requests(meter, spent) == {"get": 3, "list": 1}
    await table.version()
    assert requests(meter, spent) == {"get": 3}
    await table.version(max_age_s=60)
    assert requests(meter, spent) == {}


async def test_memory_that_is_needed_elsewhere_is_released_and_read_again(tmp_path):
    for name in ("a", "b", "c"):
        await write(tmp_path / name, 1, 2)
    async with anyio.create_task_group() as tasks:
        settings, memory = PageSettings(), Memory(TABLE_BYTES)
        lake = Lake(Roots.of(str(tmp_path)), settings, tasks, views=ViewSettings(), memory=memory, live=LiveJobs())
        ids = [each["id"] for each in await lake.summaries(lambda _: True)]
        for id_ in [*ids, *ids]:
            assert (await (await lake.table(id_, lambda _: True)).summary())["files"] == 2
            assert memory.measure() <= 2 * TABLE_BYTES
        lake.close()


async def test_a_root_that_does_not_answer_delays_no_other(tmp_path):
    await write(tmp_path / "lake/flights", 1)
    async with anyio.create_task_group() as tasks:
        roots = Hanging([Root(str(tmp_path / "lake")), Root(str(tmp_path / "hung"))])
        settings = PageSettings(wait_s=20, discover_timeout_s=0.5)
        lake = Lake(roots, settings, tasks, views=ViewSettings(), memory=Memory(1 << 20), live=LiveJobs())
        found = await lake.summaries(lambda _: True)
        assert [each["files"] for each in found] == [1]
        assert list(lake.problems) == [str(tmp_path / "hung")]
        now = datetime(2026, 11, 27, tzinfo=UTC)
        page = Pages().fleet(found, PageContext(now=now), lake.problems)
        assert all(text in page for text in ("could not be searched", f"{tmp_path}/hung", "discover_timeout_s"))
        tasks.cancel_scope.cancel()


async def test_a_later_search_that_hangs_delays_no_page(tmp_path):
    await write(tmp_path / "lake/flights", 1)
    async with anyio.create_task_group() as tasks:
        roots = Roots.of(str(tmp_path / "lake"))
        lake = Lake(
            roots, PageSettings(discover_s=0.001), tasks, views=ViewSettings(), memory=Memory(1 << 20), live=LiveJobs()
        )
        assert len(await lake.summaries(lambda _: True)) == 1
        lake._discovery._backends[str(tmp_path / "lake")].folders = lambda _: anyio.sleep(3600)  # type: ignore[attr-defined]
        with anyio.fail_after(20):
            assert len(await lake.summaries(lambda _: True)) == 1
        tasks.cancel_scope.cancel()


class Hanging(Roots):
    """One of its roots does not answer."""

    def open(self, place: str, *, scratch: str | None = None) -> Backend:
        backend = super().open(place, scratch=scratch)
        if "hung" in place:
            backend.folders = lambda _: anyio.sleep(3600)  # type: ignore[attr-defined]
        return backend


@pytest.mark.parametrize("base_path", ["", "/lake/x"])
async def test_everything_is_below_the_base_path(tmp_path, base_path):
    await write(tmp_path / "flights", 1)
    async with client_of(tmp_path, base_path=base_path) as client:
        for path in ("/", path_of(tmp_path / "flights"), "/static/page.css", "/openapi.json", "/metrics"):
            assert (await client.get(f"{base_path}{path}")).status_code == 200, path
            if base_path:
                assert (await client.get(path)).status_code == 404
        for path in ("/livez", "/readyz"):
            assert (await client.get(path)).status_code == 200
        assert (await client.get(f"{base_path}/openapi.json")).json()["servers"] == [{"url": base_path or "/"}]
        await walk(client, base_path)


async def walk(client: httpx.AsyncClient, base_path: str) -> None:
    page = (await client.get(f"{base_path}/")).text
    links = [part.partition('"')[0] for part in page.split('href="')[1:] if part.startswith(f"{base_path}/")]
    assert any("/tables/" in link for link in links)
    for link in links:
        assert (await client.get(link)).status_code == 200, link


async def test_pages_have_a_strict_policy_and_errors_are_pages(tmp_path):
    await write(tmp_path / "flights", 1)
    async with client_of(tmp_path) as client:
        table = path_of(tmp_path / "flights").removeprefix("/v1")
        found = {
            "/": 200,
            table: 200,
            f"{table}?start=0&end=1": 200,
            f"{table}?start=x&end=1": 400,
            f"{table}/file": 200,
            f"{table}/file?path=x": 200,
            f"{table}/jobs/20260101000000000": 404,
            "/tables/0000000000000000": 404,
            "/login": 200,
        }
        for path, status in found.items():
            answer = await client.get(path)
            assert answer.status_code == status, path
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await client.get("/static/../pages.py")).status_code == 404


async def test_a_table_that_finds_no_memory_is_a_request_to_wait(tmp_path):
    await write(tmp_path / "flights", 1)
    async with anyio.create_task_group() as tasks:
        lake = Lake(
            Roots.of(str(tmp_path)), PageSettings(), tasks, views=ViewSettings(), memory=Memory(0), live=LiveJobs()
        )
        (first,) = await lake.summaries(lambda _: True)
        table = await lake.table(first["id"], lambda _: True)
        with table.users.one(), pytest.raises(Overloaded):
            lake._tables.get(str(tmp_path))


async def test_a_fault_of_one_table_is_shown_there_and_hides_no_other(tmp_path, monkeypatch):
    for name in ("a", "b"):
        await write(tmp_path / name, 1)
    summary = LakeTable.summary

    async def failing(self: LakeTable) -> SummaryDocument:
        if self.place.endswith("/a"):
            raise RuntimeError("a fault")
        return await summary(self)

    monkeypatch.setattr(LakeTable, "summary", failing)
    async with client_of(tmp_path) as client:
        a, b = (await client.get("/v1/tables")).json()["tables"]
        assert (a["error"]["type"], a["files"], b["error"], b["files"]) == ("CorruptObject", None, None, 1)


async def test_http_2_is_refused_however_a_client_came_to_it(tmp_path):
    async with lake_app(Roots.of(str(tmp_path)), SECRET) as app:
        sent = []

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        scope = {"type": "http", "http_version": "2", "method": "GET", "path": "/v1/tables", "headers": []}
        await app(scope, lambda: anyio.sleep(3600), send)  # type: ignore[arg-type, return-value]
        assert sent[0]["status"] == 505
