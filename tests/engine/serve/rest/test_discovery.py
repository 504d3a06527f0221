"""The tables below the roots: which are found, what that costs, and what a root that fails does to the others."""

import os
from pathlib import Path

import anyio
import pytest

from tallymark.backends import Backend, Unavailable, open_backend
from tallymark.backends.local import LocalBackend
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.rest.discovery import CONCURRENCY, PAGE_COUNT, Discovery, tables_below
from tallymark.engine.serve.roots import Root, Roots, place_of
from tallymark.engine.serve.settings import PageSettings
from tests.support.faulty import FaultyBackend, hanging, lost_request, refused, slow
from tests.support.loops import on_both_loops, on_virtual_time

PROPERTIES = ".hoodie/hoodie.properties"


@pytest.fixture(params=["memory", "local"])
def backend(request, tmp_path) -> Backend:
    return MemoryBackend() if request.param == "memory" else disk(tmp_path / "lake")


def disk(path: Path) -> Backend:
    """A folder above tables: unfinished objects are not where those of a table are."""
    return LocalBackend(path, scratch="_scratch")


class GivenRoots(Roots):
    """Roots whose storage the test has."""

    def __init__(self, **backends: Backend) -> None:
        super().__init__([Root(f"/{name}") for name in backends])
        self._backends = backends

    def open(self, place: str, *, scratch: str | None = None) -> Backend:
        return self._backends[place.removeprefix("/")]


async def make_tables(backend: Backend, *paths: str) -> None:
    for path in paths:
        await backend.put(f"{path}/{PROPERTIES}" if path else PROPERTIES, b"")


async def found_below(backend: Backend, *, depth: int = 3, folder_count: int = 1000) -> list[str]:
    return await tables_below(backend, depth=depth, folder_count=folder_count)


async def with_tables(*paths: str) -> FaultyBackend:
    backend = FaultyBackend(MemoryBackend())
    await make_tables(backend, *paths)
    return backend


@on_both_loops
async def test_tables_are_found_at_every_level_and_none_inside_of_another(backend):
    await backend.put("plain/month=1/a.parquet", b"")
    await make_tables(backend, "sales", "sales/inner", "team/a", "team/b c/100% é", "_old/t", ".trash/t", "team/_t")
    assert await found_below(backend) == ["sales", "team/a", "team/b c/100% é"]


@on_both_loops
async def test_the_root_may_be_the_table(backend):
    await make_tables(backend, "", "month=1")
    assert await found_below(backend, depth=0) == [""]


@on_both_loops
async def test_below_a_root_that_is_empty_or_missing_are_no_tables(backend):
    assert await found_below(backend) == []


@pytest.mark.parametrize(("depth", "count"), [(0, 0), (1, 1), (2, 2), (3, 3), (9, 4)])
@on_both_loops
async def test_tables_are_looked_for_down_to_the_depth(backend, depth, count):
    tables = ["t", "a/t", "a/b/t", "a/b/c/t"]
    await make_tables(backend, *tables)
    assert await found_below(backend, depth=depth) == sorted(tables[:count])


@on_virtual_time
async def test_beyond_the_bound_the_error_names_the_setting_and_no_more_is_listed():
    backend = await with_tables("a/t", "b/t", "c/t")
    assert len(await found_below(backend, folder_count=7)) == 3
    backend.calls.clear()
    with pytest.raises(InvalidRequest, match=r"more than 6 folders .* raise discover_folder_count"):
        await found_below(backend, folder_count=6)
    assert sorted(backend.paths("folders")) == ["", "a", "b", "c"]


@on_virtual_time
async def test_folders_are_listed_a_few_at_once():
    backend = await with_tables(*(f"t{number:04}" for number in range(PAGE_COUNT + 10 * CONCURRENCY)))
    backend.add(slow("folders", 1.0))
    assert len(await found_below(backend, folder_count=10_000)) == PAGE_COUNT + 10 * CONCURRENCY
    assert anyio.current_time() == 1 + -(-PAGE_COUNT // CONCURRENCY) + 10


@on_both_loops
async def test_links_are_not_followed(tmp_path):
    backend = disk(tmp_path / "lake")
    await make_tables(backend, "t")
    await make_tables(disk(tmp_path), "outside")
    (tmp_path / "lake" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "lake" / "around").symlink_to(tmp_path / "lake")
    (tmp_path / "lake" / "seems").mkdir()
    (tmp_path / "lake" / "seems" / ".hoodie").symlink_to(tmp_path / "outside" / ".hoodie")
    assert await found_below(backend) == ["t"]


@on_both_loops
async def test_a_folder_whose_name_no_request_can_contain_is_left_out(tmp_path):
    await make_tables(disk(tmp_path), "t")
    for name in ("a\nb", os.fsdecode(b"\xff"), "a\u2028b"):
        (tmp_path / name / ".hoodie").mkdir(parents=True)
    assert await found_below(disk(tmp_path)) == ["t"]


@on_virtual_time
async def test_a_folder_that_may_not_be_listed_hides_no_other_and_is_logged(caplog):
    backend = await with_tables("a/t", "lost+found/t", "private/t")
    backend.add(refused("folders", "lost+found"), refused("folders", "private"))
    assert await found_below(backend) == ["a/t"]
    (line,) = [record.getMessage() for record in caplog.records if "folders.refused" in record.getMessage()]
    assert line.endswith('folders=2 first=lost+found reason="NotPermitted: refused"')


@on_both_loops
async def test_a_search_on_s3_is_one_list_for_each_folder(s3, bucket):
    backend = open_backend(f"s3://{bucket}/lake", options=s3.options)
    await make_tables(backend, "sales", "team/a", "team/b")
    await backend.put("sales/month=1/a.parquet", b"")
    s3.client.put_object(Bucket=bucket, Key="lake/empty/", Body=b"")  # as consoles make a folder
    before = backend.statistics().count  # type: ignore[attr-defined]
    assert await found_below(backend) == ["sales", "team/a", "team/b"]
    after = backend.statistics()  # type: ignore[attr-defined]
    assert after.count - before == after.of("list").count == len(["", "sales", "empty", "team", "team/a", "team/b"])
    url = f"s3a://{bucket}/lake"
    found = await Discovery(Roots([Root(url, s3.options)]), PageSettings()).tables()
    assert found.places == tuple(place_of(f"{url}/{table}") for table in ("sales", "team/a", "team/b"))
    assert found.problems == {}


@on_both_loops
async def test_places_are_those_that_the_roots_open_once_each_and_sorted(tmp_path):
    lake = tmp_path / "lake"
    await make_tables(disk(lake), "z", "a/b c")
    (tmp_path / "link").symlink_to(lake)
    roots = Roots.of(f"file:{lake}", f"{lake}/a", f"{lake}/z", f"{tmp_path}/link", f"{tmp_path}/missing")
    found = await Discovery(roots, PageSettings()).tables()
    assert found.problems == {}
    assert found.places == (f"{lake}/a/b c", f"{lake}/z", f"{tmp_path}/link/a/b c", f"{tmp_path}/link/z")
    for place in found.places:
        assert place_of(place) == place
        assert await roots.open(place).get(PROPERTIES) == b""


@on_virtual_time
async def test_all_callers_share_one_search_whose_result_is_kept_for_the_interval():
    backend = await with_tables("t")
    backend.add(slow("folders", 1.0))
    discovery = Discovery(GivenRoots(lake=backend), PageSettings(discover_s=60))
    results = []

    async def request():
        results.append((await discovery.tables()).places)

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(request)
    assert results == [("/lake/t",)] * 100
    await make_tables(backend, "new")
    await anyio.sleep(59)
    await request()
    assert backend.paths("folders") == ["", "t"]
    await anyio.sleep(1)
    await request()
    assert results[-2:] == [("/lake/t",), ("/lake/new", "/lake/t")]
    assert sorted(backend.paths("folders")) == ["", "", "new", "t", "t"]


@on_virtual_time
async def test_a_root_that_fails_keeps_what_was_found_there_and_the_others_go_on(caplog):
    good, bad, bare = await with_tables("a"), await with_tables("b"), await with_tables()
    bare.add(refused("folders"))
    discovery = Discovery(GivenRoots(good=good, bad=bad, bare=bare), PageSettings(discover_s=60))
    assert (await discovery.tables()).places == ("/bad/b", "/good/a")
    await make_tables(good, "new")
    bad.add(lost_request("folders", "b"))
    await anyio.sleep(60)
    found = await discovery.tables()
    assert found.places == ("/bad/b", "/good/a", "/good/new")
    assert found.problems == {"/bad": "the request was lost", "/bare": "refused"}
    assert 'root.unsearched url=/bad reason="the request was lost"' in caplog.messages
    bad.heal()
    await anyio.sleep(60)
    assert list((await discovery.tables()).problems) == ["/bare"]


@on_virtual_time
async def test_a_root_that_hangs_delays_the_others_by_its_time_limit():
    good, hung = await with_tables("a"), await with_tables("b")
    hung.add(hanging("folders", "b"))
    discovery = Discovery(GivenRoots(good=good, hung=hung), PageSettings(discover_timeout_s=5))
    found = await discovery.tables()
    assert anyio.current_time() == 5
    assert found.places == ("/good/a",)
    assert found.problems == {"/hung": "/hung was not searched within 5 s (discover_timeout_s)"}


@on_virtual_time
async def test_a_root_of_too_many_folders_says_so():
    settings = PageSettings(discover_folder_count=2)
    found = await Discovery(GivenRoots(lake=await with_tables("a", "b")), settings).tables()
    assert found.places == ()
    assert "discover_folder_count" in found.problems["/lake"]


@on_virtual_time
async def test_a_caller_that_leaves_does_not_end_the_search_of_the_others():
    backend = await with_tables("t")
    backend.add(slow("folders", 1.0))
    discovery = Discovery(GivenRoots(lake=backend), PageSettings())
    async with anyio.create_task_group() as tasks:

        async def leave():
            with anyio.move_on_after(0.5):
                await discovery.tables()

        tasks.start_soon(leave)
        await anyio.sleep(0.1)
        assert (await discovery.tables()).places == ("/lake/t",)


def test_a_store_that_cannot_be_opened_is_a_problem_of_its_root():
    class Broken(GivenRoots):
        def open(self, place: str, *, scratch: str | None = None) -> Backend:
            raise Unavailable("no such store")

    found = anyio.run(Discovery(Broken(lake=MemoryBackend()), PageSettings()).tables)
    assert found.problems == {"/lake": "no such store"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("depth", -1),
        ("depth", True),
        ("discover_s", 0),
        ("discover_folder_count", 0),
        ("discover_timeout_s", float("nan")),
    ],
)
def test_a_setting_out_of_its_range_is_refused(name, value):
    with pytest.raises(InvalidRequest, match=f"setting {name}="):
        PageSettings(**{name: value})
