import contextlib
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from tallymark.engine.errors import Closed, InvalidRequest, NotAuthenticated, Sealed, ServiceUnavailable
from tallymark.engine.rpc.client import JobClient, client_for
from tallymark.engine.rpc.connection import CONNECT_TIMEOUT_S, REFUSED_S_MAX
from tallymark.engine.rpc.dispatcher import BlockOf
from tallymark.engine.rpc.handshake import ServiceAddress, job_key
from tests.engine.rpc.serving import (
    INSTANT,
    PATIENCE_S,
    SECRET,
    Ledger,
    Table,
    client_of,
    in_thread,
    serving,
    settled,
    until,
)
from tests.support.loops import on_both_loops


@contextmanager
def stranger(behave: Callable[[socket.socket], object]) -> Iterator[ServiceAddress]:
    """A program that is no marker service listens, and does this with one connection after the other."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1000)

    def accept() -> None:
        with contextlib.suppress(OSError):  # at the end
            while True:
                connection, _ = listener.accept()
                with connection:
                    behave(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield ServiceAddress("127.0.0.1", listener.getsockname()[1], job_key(SECRET, INSTANT))
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(PATIENCE_S)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def client_of_nobody(wait_s: float = 3600) -> JobClient:
    return JobClient(ServiceAddress("127.0.0.1", closed_port(), bytes(32)), INSTANT, wait_s=wait_s)


@on_both_loops
async def test_more_names_than_a_frame_holds_go_in_several() -> None:
    ledger = Ledger()
    names = [f"year=2013/{n:0200}.parquet" for n in range(30)]
    async with client_of(serving(ledger.create, frame_bytes=1024, inflight_count=3)) as (server, client):
        await in_thread(client.create, names)
        assert server.statistics().requests > 3
    assert sorted(path for _, path, _ in ledger.created) == names


@on_both_loops
async def test_a_look_up_has_the_blocks_of_its_partitions_and_an_empty_one_of_an_unknown() -> None:
    table = Table(a=bytes(range(200)) * 100, b=b"of b")
    async with client_of(serving(Ledger().create, look_up=table.look_up, frame_bytes=1024)) as (_, client):
        found = client.look_up(7, "hash", ["b", "a", "none", "a"], wait_s=30)
        assert await in_thread(found.result, PATIENCE_S) == {**table.blocks, "none": b""}
        assert client.look_up(7, "hash", [], wait_s=30).result(0) == {}
    assert table.asked == ["b", "a", "none"]


@on_both_loops
async def test_look_ups_and_markers_share_a_connection_and_have_a_bound_each() -> None:
    table, ledger = Table(a=b"of a"), Ledger()

    async def hold(partition: str) -> bytes:
        await anyio.sleep_forever()
        return b""

    async def look_up(position: int, log_hash: str) -> BlockOf:
        return hold if position == 8 else await table.look_up(position, log_hash)

    async with client_of(serving(ledger.create, look_up=look_up)) as (server, client):
        marker, never = client.request(["hold"]), client.look_up(8, "hash", ["a"], wait_s=0.1)
        error = await settled(never)
        assert isinstance(error, ServiceUnavailable)
        assert "within 0.1 s" in str(error)
        assert not marker.done()
        assert await settled(client.look_up(7, "hash", ["a"], wait_s=PATIENCE_S)) is None
        ledger.released.set()
        assert await settled(marker) is None
        assert server.statistics().connections == 1


@on_both_loops
async def test_a_server_that_restarts_in_the_middle_is_found_again_and_asked_again() -> None:
    first, second = Ledger(), Ledger()
    async with serving(first.create) as server:
        address = server.address(INSTANT)
        client = JobClient(address, INSTANT, wait_s=PATIENCE_S)
        await in_thread(client.create, ["before"])
        ask = client.request(["hold"])
        await until(lambda: "hold" in first.begun)
    assert not ask.done()
    second.released.set()
    async with serving(second.create, port=address.port):
        assert await settled(ask) is None
        client.close()
    assert second.created == [(INSTANT, "hold", "CREATE")]


def test_a_server_that_is_gone_is_unavailable_within_the_bound_naming_what_to_check() -> None:
    began = time.monotonic()
    with client_of_nobody(wait_s=0.3) as client, pytest.raises(ServiceUnavailable) as caught:
        client.create(["a"])
    assert 0.3 <= time.monotonic() - began < REFUSED_S_MAX
    for words in (r"127\.0\.0\.1:\d+ within 0\.3 s", "refused", "firewall", "advertised_host"):
        assert re.search(words, str(caught.value))


def test_a_machine_where_nobody_listens_any_more_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallymark.engine.rpc.connection.REFUSED_S_MAX", 0.2)
    with client_of_nobody() as client:
        error = client.request(["a"]).exception(PATIENCE_S)
    assert isinstance(error, ServiceUnavailable)
    assert "the job of this ticket, has ended" in str(error)


def test_attempts_to_connect_grow_rarer() -> None:
    attempts: list[socket.socket] = []
    with stranger(attempts.append) as address, JobClient(address, INSTANT, wait_s=1) as client:
        error = client.request(["a"]).exception(PATIENCE_S)
    assert isinstance(error, ServiceUnavailable)
    assert 2 <= len(attempts) <= 9  # pauses of at least 25, 50, 100, 200, 400, 800 ms, and one at the deadline


def test_a_listener_that_never_speaks_is_unavailable_within_the_bound() -> None:
    silent = threading.Event()
    with stranger(lambda _: silent.wait(PATIENCE_S)) as address:
        began = time.monotonic()
        with JobClient(address, INSTANT, wait_s=0.2) as client, pytest.raises(ServiceUnavailable):
            client.create(["a"])
        assert time.monotonic() - began < CONNECT_TIMEOUT_S
        silent.set()


def test_a_listener_of_another_kind_is_refused_at_once() -> None:
    greeting = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    with stranger(lambda raw: raw.sendall(greeting)) as address, JobClient(address, INSTANT, wait_s=3600) as client:
        error = client.request(["a"]).exception(PATIENCE_S)
    assert isinstance(error, NotAuthenticated)
    assert "not a tallymark service" in str(error)


@on_both_loops
async def test_a_server_that_says_farewell_is_not_asked_again() -> None:
    ledger = Ledger()
    async with serving(ledger.create, shutdown_error=Sealed("the job has ended")) as server:
        client = JobClient(server.address(INSTANT), INSTANT, wait_s=1000)
        asks = [client.request(["hold"]), client.request(["hold"])]
        await until(lambda: ledger.begun == ["hold", "hold"])
    for ask in [*asks, client.request(["late"])]:
        error = await settled(ask)
        assert isinstance(error, Sealed)
        assert str(error) == "the job has ended"
    client.close()


@pytest.mark.parametrize(
    ("paths", "words"),
    [("a.parquet", "list of paths"), (["a\udc80"], "Unicode"), ([b"a"], "not a text"), ([None], "not a text")],
)
def test_paths_that_are_none_are_refused_without_a_connection(paths: Sequence[str], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        client_of_nobody().create(paths)


def test_no_paths_are_durable_already() -> None:
    client = client_of_nobody()
    client.create([])
    assert client.request([]).done()


@on_both_loops
async def test_a_future_s_callback_may_ask_again() -> None:
    ledger = Ledger()
    async with client_of(serving(ledger.create)) as (_, client):
        second: list[Future[None]] = []
        client.request(["first"]).add_done_callback(lambda _: second.append(client.request(["second"])))
        await until(lambda: bool(second))
        assert await settled(second[0]) is None


@on_both_loops
async def test_a_new_job_closes_the_idle_clients_of_others_and_leaves_the_busy() -> None:
    ledger = Ledger()
    async with serving(ledger.create) as server:
        idle, busy, new = ("20260102030405001", "20260102030405002", "20260102030405003")
        clients = {instant: client_for(server.address(instant), instant, 5) for instant in (idle, busy)}
        await in_thread(clients[idle].create, ["done"])
        ask = clients[busy].request(["hold"])
        await until(lambda: "hold" in ledger.begun)
        await in_thread(client_for, server.address(new), new, 5)
        await until(lambda: server.statistics().connections == 1)
        assert client_for(server.address(busy), busy, 5) is clients[busy]
        ledger.released.set()
        assert await settled(ask) is None
        await in_thread(clients[idle].create, ["once more"])
        for client in clients.values():
            await in_thread(client.close)


FORK = """
import os, sys, threading
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc import client as module
from tallymark.engine.rpc.handshake import ServiceAddress
from tests.engine.rpc.serving import INSTANT

address = ServiceAddress("127.0.0.1", int(sys.argv[1]), bytes.fromhex(sys.argv[2]))
parents = module.client_for(address, INSTANT, 5)
parents.create(["parent"])
waiting = parents.request(["hold"])
with module._clients._lock, parents._lock:   # as another thread might hold them
    child = os.fork()
    if not child:
        childs = module.client_for(address, INSTANT, 5)
        assert childs is not parents
        childs.create(["child"])
        try:
            parents.create(["stolen"])
        except InvalidRequest as error:
            assert "client_for" in str(error)
        else:
            os._exit(3)
        childs.create(["release"])
        os._exit(0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
waiting.result(30)
parents.create(["parent again"])
"""


@on_both_loops
async def test_a_forked_child_gets_a_connection_of_its_own_and_the_parent_s_goes_on() -> None:
    ledger = Ledger()

    async def create(instant: str, paths: Sequence[str], io: str) -> None:
        if paths[0] == "release":
            ledger.released.set()
        await ledger.create(instant, paths, io)

    async with serving(create) as server:
        address = server.address(INSTANT)
        # From Python 3.12 on a fork beside threads warns, and Spark's daemon forks before there are any.
        program = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK]
        command = [*program, str(address.port), address.job_key.hex()]
        run = await anyio.run_process(command, cwd=Path(__file__).parents[3], check=False)
    assert (run.returncode, run.stderr.decode()) == (0, "")
    created = [path for _, path, _ in ledger.created]
    assert sorted(created) == ["child", "hold", "parent", "parent again", "release"]
    assert created.index("child") < created.index("hold") < created.index("parent again")


@on_both_loops
async def test_close_fails_a_waiting_request_while_there_is_no_connection() -> None:
    client = client_of_nobody()
    await in_thread(client.close)
    future = client.request(["a"])
    await anyio.sleep(0.1)  # the client pauses between two attempts
    await in_thread(client.close)
    assert isinstance(future.exception(0), Closed)
