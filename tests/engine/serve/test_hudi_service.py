"""The service as Hudi's client meets it: a socket, its routes, and what it says of requests that it does not fulfil."""

import http.client
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import anyio.to_thread
import pytest

from tallymark.backends.local import LocalBackend
from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.http_peer import HttpRequest
from tallymark.engine.serve.hudi_options import hudi_options
from tallymark.engine.serve.hudi_routes import HudiRoutes
from tallymark.engine.serve.hudi_service import serve_hudi
from tallymark.engine.serve.hudi_tables import HudiTables
from tallymark.engine.serve.memory import DEFAULT_BYTES, Memory
from tallymark.engine.serve.roots import Root, Roots
from tallymark.engine.serve.settings import HudiServiceSettings
from tests.engine.serve.hudi_table import INSTANT, put_state, put_table
from tests.engine.serve.test_hudi_markers import SETTINGS, marker
from tests.support.loops import on_both_loops

GUIDE = Path(__file__).parents[3] / "docs" / "hudi.md"

in_thread = anyio.to_thread.run_sync


class Client:
    """One connection, as long as the server keeps it."""

    def __init__(self, port: int, folder: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.folder = folder

    def ask(self, method: str, route: str, **given: str) -> tuple[int, Any]:
        given.setdefault("markerdirpath", self.folder)
        self.connection.request(method, f"/v1/hoodie/marker/{route}?{urlencode(given)}")
        response = self.connection.getresponse()
        body = response.read()
        return response.status, json.loads(body) if response.status == 200 else body.decode()

    def get(self, target: str) -> tuple[int, bytes]:
        self.connection.request("GET", target)
        response = self.connection.getresponse()
        return response.status, response.read()

    async def __call__(self, method: str, route: str, **given: str) -> tuple[int, Any]:
        return await in_thread(partial(self.ask, method, route, **given))


@asynccontextmanager
async def served(root: Path, **settings: Any) -> AsyncIterator[Callable[[], Client]]:
    """Yield what connects to a service of one table, whose instant is inflight."""
    storage = LocalBackend(root)
    await put_table(storage, 9)
    await put_state(storage, 9, "inflight")
    await storage.delete([])
    async with anyio.create_task_group() as tasks:
        run = partial(serve_hudi, Roots.of(str(root)), HudiServiceSettings(port=0, **settings), markers=SETTINGS)
        _, port = await tasks.start(run)
        clients: list[Client] = []

        def connect() -> Client:
            clients.append(Client(port, f"file:{root}/.hoodie/.temp/{INSTANT}"))
            return clients[-1]

        yield connect
        tasks.cancel_scope.cancel()
        for client in clients:
            client.connection.close()


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if "timeline" not in path.parts}


@on_both_loops
async def test_the_whole_life_of_an_instants_markers(tmp_path):
    async with served(tmp_path) as connect:
        client = connect()
        before = files(tmp_path)
        assert await client("GET", "dir/exists") == (200, False)
        names = [marker(1), marker(2, "MERGE"), marker(3, "APPEND"), f"ö=a b%2F/{marker(4)}"]
        for name in (*names, names[0]):
            assert await client("POST", "create", markername=name) == (200, True)
        assert await client("GET", "dir/exists") == (200, True)
        assert await client("GET", "all") == (200, sorted(names))
        assert await client("GET", "create-and-merge") == (200, sorted({*names} - {names[2]}))
        assert await client("GET", "append") == (200, [names[2]])
        assert await client("POST", "dir/delete") == (200, True)
        assert await client("POST", "dir/delete") == (200, False)
        assert files(tmp_path) - {".hoodie/.tallymark", ".hoodie/.tallymark/tmp"} == before - {
            ".hoodie/.tallymark",
            ".hoodie/.tallymark/tmp",
        }


@on_both_loops
async def test_many_connections_ask_at_once(tmp_path):
    async with served(tmp_path) as connect:
        clients = [connect() for _ in range(20)]
        found: list[tuple[int, Any]] = []

        async def ask(number: int) -> None:
            found.extend([await clients[number]("POST", "create", markername=marker(5 * number + n)) for n in range(5)])

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(ask, number)
        assert found == [(200, True)] * 100
        assert await clients[0]("GET", "all") == (200, [marker(number) for number in range(100)])


@on_both_loops
async def test_what_is_not_done_is_an_error_that_says_why(tmp_path):
    async with served(tmp_path / "lake") as connect:
        client = connect()

        async def refused(status: int, why: str, method: str, route: str, **given: str) -> None:
            found, said = await client(method, route, **given)
            assert (found, why in said) == (status, True), (found, said)

        other, one = f"/.hoodie/.temp/{INSTANT}", {"markername": marker(1)}
        await refused(400, "markername is missing", "POST", "create")
        await refused(400, "markerdirpath is missing", "GET", "all", markerdirpath="")
        await refused(400, "cannot be a marker", "POST", "create", markername="x.parquet")
        await refused(400, "early.conflict.detection.enable=false", "POST", "create", **one, basepath="/x")
        await refused(403, "below none of the roots", "GET", "all", markerdirpath=f"{tmp_path}/else{other}")
        await refused(403, "below none of the roots", "POST", "dir/delete", markerdirpath=f"/etc{other}")
        await refused(400, "segments", "POST", "dir/delete", markerdirpath=f"{tmp_path}/lake/../else{other}")
        await refused(
            400,
            "no Hudi table is there",
            "POST",
            "create",
            markername=marker(1),
            markerdirpath=f"{tmp_path}/lake/none{other}",
        )
        await refused(409, "not inflight", "POST", "create", **one, markerdirpath=client.folder[:-1] + "9")
        await refused(404, "there is no GET", "GET", "create", **one)
        await refused(404, "there is no POST", "POST", "all")
        status, said = await in_thread(client.get, "/v1/hoodie/view/compactions/pending/")
        assert (status, b"no views" in said) == (404, True)
        assert await client("POST", "create", markername=marker(1)) == (200, True)


@on_both_loops
async def test_slow_malformed_and_vanishing_clients_leave_the_others_alone(tmp_path):
    async with served(tmp_path, handshake_timeout_s=0.3, request_bytes=4096) as connect:
        client = connect()
        port = client.connection.port

        def talk(data: bytes) -> bytes:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
                raw.sendall(data)
                heard = b""
                while some := raw.recv(4096):
                    heard += some
                return heard

        assert await client("POST", "create", markername=marker(1)) == (200, True)
        assert await in_thread(talk, b"GET / HT") == b"", "the rest did not come in time"
        assert (await in_thread(talk, b"hello\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
        assert (await in_thread(talk, b"GET /" + b"x" * 5000)).startswith(b"HTTP/1.1 400 ")
        whole = b"GET / HTTP/1.1\r\n\r\n"
        assert (await in_thread(talk, whole * 3 + b"GET /")).count(b"HTTP/1.1 200") == 3, "and then it was too slow"
        vanishing = socket.create_connection(("127.0.0.1", port))
        vanishing.sendall(whole)
        vanishing.close()
        assert await client("POST", "create", markername=marker(2)) == (200, True)


@on_both_loops
async def test_everything_but_markers_is_asked_of_hudis_own_server_where_there_is_one(tmp_path):
    asked = []

    class Views(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if "pending" in self.path else 500)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Views) as views:
        thread = threading.Thread(target=views.serve_forever)
        thread.start()
        async with served(tmp_path, views=f"127.0.0.1:{views.server_port}") as connect:
            client = connect()
            target = "/v1/hoodie/view/compactions/pending/?basepath=a%2Fb&timelinehash=1"
            assert await in_thread(client.get, target) == (200, b"[]")
            assert await in_thread(client.get, "/v1/hoodie/view/slices") == (500, b"[]")
            assert asked == [target, "/v1/hoodie/view/slices"]
            views.shutdown()
            thread.join()
            views.server_close()
            status, said = await in_thread(client.get, target)
            assert (status, b"gives no answer" in said) == (502, True)
            assert await connect()("POST", "create", markername=marker(1)) == (200, True)


@on_both_loops
async def test_an_address_or_root_that_cannot_be_served_is_said_at_the_start(tmp_path):
    with pytest.raises(InvalidRequest, match="is not an absolute path"):
        Roots.of("lake")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidRequest, match=f"cannot listen on 127.0.0.1:{port}.*HudiServiceSettings"):
            await serve_hudi(Roots.of(str(tmp_path)), HudiServiceSettings(port=port))


def test_the_guide_has_the_options_that_a_driver_sets():
    block = re.search(r"```properties\n(.+?)```", GUIDE.read_text(), re.DOTALL)
    assert block
    assert dict(line.split("=", 1) for line in block[1].splitlines()) == hudi_options("127.0.0.1", 26754)


@on_both_loops
async def test_a_store_that_does_not_answer_delays_no_other_root(tmp_path):
    storage = LocalBackend(tmp_path)
    await put_table(storage, 9)
    await put_state(storage, 9, "inflight")
    with socket.create_server(("127.0.0.1", 0), backlog=512) as silent:
        options = StorageOptions(endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}", credentials=f"{__name__}:keys")
        roots = Roots([Root("s3://hung", options), Root(str(tmp_path))])
        async with anyio.create_task_group() as tasks:
            routes = HudiRoutes(HudiTables(roots, tasks, SETTINGS, Memory(DEFAULT_BYTES)))
            answered = []

            async def create(base: str, number: int) -> None:
                folder = f"{base}/.hoodie/.temp/{INSTANT}"
                query = urlencode({"markerdirpath": folder, "markername": marker(number)})
                response = await routes.answer(HttpRequest("POST", "/v1/hoodie/marker/create", query))
                answered.append((base, response.body))

            for number in range(300):
                tasks.start_soon(create, f"s3://hung/{number % 3}", number)
            await anyio.sleep(0.1)
            for number in range(20):
                await create(str(tmp_path), number)
            tasks.cancel_scope.cancel()
    assert answered == [(str(tmp_path), b"true")] * 20


def keys() -> dict[str, str]:
    return {"access_key_id": "a", "secret_access_key": "b"}
