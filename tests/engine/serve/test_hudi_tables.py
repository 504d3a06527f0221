"""Which places are served: those below the roots, in each form that Hudi names them by, and no other."""

from urllib.parse import urlencode

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import InvalidRequest, Overloaded
from tallymark.engine.serve.http_peer import HttpRequest
from tallymark.engine.serve.hudi_routes import HudiRoutes
from tallymark.engine.serve.hudi_tables import HudiTables
from tallymark.engine.serve.memory import DEFAULT_BYTES, INSTANT_BYTES, RECENT_S, RETRY_S, TABLE_BYTES, Memory
from tallymark.engine.serve.roots import NotServed, Root, Roots, place_of
from tallymark.engine.settings import MarkerSettings
from tests.engine.serve.hudi_table import INSTANT, OTHER, put_table
from tests.engine.serve.test_hudi_markers import marker
from tests.support.loops import on_both_loops, on_virtual_time


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("/data/lake", "/data/lake"),
        ("/data/lake/", "/data/lake"),
        ("file:/data/lake", "/data/lake"),
        ("file:///data/a b", "/data/a b"),
        ("s3a://bucket/lake", "s3://bucket/lake"),
        ("s3://bucket", "s3://bucket"),
        ("S3N://bucket/lake", "s3://bucket/lake"),
        ("gs://bucket/lake", "gs://bucket/lake"),
        ("hdfs://nameservice/lake", "hdfs://nameservice/lake"),
    ],
)
def test_a_place_has_one_form(url, place):
    assert place_of(url) == place


@pytest.mark.parametrize(
    "url",
    [
        "",
        "lake",
        "./lake",
        "/data/../etc",
        "/data//lake",
        "/data/./lake",
        "/",
        "/data/a\nb",
        "/data/a\0b",
        "file:",
        "file://",
        "s3://",
        "s3:lake",
        "s3://b/../c",
        "s3://b//c",
        "s3:///lake",
    ],
)
def test_what_could_be_another_place_than_it_seems_is_refused(url):
    with pytest.raises(InvalidRequest, match="is not an absolute path, or a URL"):
        place_of(url)


@on_both_loops
async def test_only_tables_below_a_root_are_found(tmp_path):
    lake, other = tmp_path / "lake", tmp_path / "lakeside"
    for folder in (lake / "flights", other):
        folder.mkdir(parents=True)
    (lake / "way_out").symlink_to(other)
    (tmp_path / "alias").symlink_to(lake)
    async with anyio.create_task_group() as tasks:
        for root in (str(lake), f"file:{lake}", str(tmp_path / "alias")):
            tables = HudiTables(Roots.of(root, "s3a://bucket/lake"), tasks, MarkerSettings(), Memory(DEFAULT_BYTES))
            for base in (f"{root}/flights", "s3://bucket/lake", "s3a://bucket/lake/a/b"):
                markers, instant = tables.find(f"{base}/.hoodie/.temp/{INSTANT}")
                assert instant == INSTANT
                assert tables.find(f"{base}/.hoodie/.temp/{INSTANT}")[0] is markers
            for base in (
                other,
                tmp_path,
                lake / "way_out",
                "s3a://bucket/lakeside",
                "s3a://bucket2/lake",
                "gs://bucket/lake",
            ):
                with pytest.raises(NotServed, match="below none of the roots"):
                    tables.find(f"{base}/.hoodie/.temp/{INSTANT}")
            with pytest.raises(InvalidRequest, match="is not an absolute path"):
                tables.find(f"{root}/../lakeside/.hoodie/.temp/{INSTANT}")
            for folder in (
                f"{root}/.hoodie/.temp",
                f"{root}/.hoodie/.temp/..",
                f"{root}/{INSTANT}",
                f"/.hoodie/.temp/{INSTANT}",
            ):
                with pytest.raises(InvalidRequest, match="is not <table>"):
                    tables.find(folder)
        with pytest.raises(InvalidRequest, match="no root is given"):
            Roots.of()


@on_both_loops
async def test_idle_tables_make_room_for_others(tmp_path):
    async with anyio.create_task_group() as tasks:
        tables = HudiTables(Roots.of(str(tmp_path)), tasks, MarkerSettings(), Memory(int(1.5 * TABLE_BYTES)))
        folders = [f"{tmp_path}/{name}/.hoodie/.temp/{INSTANT}" for name in "abc"]
        first, second = (tables.find(folder)[0] for folder in folders[:2])
        with first._users.one():
            third, _ = tables.find(folders[2])
            assert [tables._tables.find(f"{tmp_path}/{name}") for name in "abc"] == [first, None, third]
            with third._users.one(), pytest.raises(Overloaded, match="memory limit"):
                tables.find(folders[1])
        assert tables.find(folders[1])[0] not in (first, second, third)
        tasks.cancel_scope.cancel()


class OneStorage(Roots):
    """All tables are one, in memory."""

    def __init__(self) -> None:
        super().__init__([Root("/lake")])
        self.backend = MemoryBackend()

    def open(self, place: str, *, scratch: str | None = None) -> MemoryBackend:
        return self.backend


@on_virtual_time
async def test_a_request_waits_until_the_service_has_room():
    """Hudi's client would fail its task at an error."""
    roots, memory = OneStorage(), Memory(TABLE_BYTES + INSTANT_BYTES // 2)
    await put_table(roots.backend, 9)
    for instant in (INSTANT, OTHER):
        await roots.backend.put(f".hoodie/timeline/{instant}.inflight", b"")

    def create(instant: str) -> HttpRequest:
        query = urlencode({"markerdirpath": f"/lake/.hoodie/.temp/{instant}", "markername": marker(1)})
        return HttpRequest("POST", "/v1/hoodie/marker/create", query)

    async with anyio.create_task_group() as tasks:
        tables = HudiTables(roots, tasks, MarkerSettings(), memory)
        routes = HudiRoutes(tables)
        assert (await routes.answer(create(INSTANT))).body == b"true"
        started = anyio.current_time()
        assert (await routes.answer(create(OTHER))).body == b"true"
        assert RECENT_S <= anyio.current_time() - started <= RECENT_S + RETRY_S + 1
        with tables.find(f"/lake/.hoodie/.temp/{OTHER}")[0]._instants.get(OTHER).users.one():
            refused = await routes.answer(create(INSTANT))
        assert (refused.status, b"memory limit" in refused.body) == (429, True)
        tasks.cancel_scope.cancel()
