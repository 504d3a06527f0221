"""The client's connection to a real service: many threads, lost connections, closing, and idle time."""

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from random import Random
from typing import Any

import anyio
import pytest

from tallymark.engine.errors import Closed, Sealed
from tallymark.engine.rpc.client import JobClient, client_for
from tallymark.engine.rpc.connection import ClientConnection, ThreadIo, run_blocking
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.pending_requests import AnyPending, PendingMarkers, PendingRequests
from tests.engine.rpc.serving import INSTANT, PATIENCE_S, Ledger, Table, client_of, in_thread, serving, settled, until
from tests.support.loops import on_both_loops


def begun(function: Callable[..., Any], *arguments: object) -> Future[Any]:
    """The outcome of a thread that may block."""
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(function(*arguments))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome


def thread_of(client: JobClient) -> threading.Thread:
    assert client._running is not None
    return client._running.thread


@pytest.mark.parametrize("is_lossy", [False, True])
@on_both_loops
async def test_many_threads_share_a_connection_and_lose_no_request_also_when_the_network_loses_it(
    is_lossy: bool,
) -> None:
    ledger = Ledger()
    async with client_of(serving(ledger.create, look_up=Table(a=b"of a").look_up)) as (server, client):

        def work(number: int) -> None:
            later = []
            for n in range(25):
                client.create([f"{number}/now/{n}"])
                later.append(client.request([f"{number}/later/{n}"]))
                assert client.look_up(7, "hash", ["a"], wait_s=PATIENCE_S).result(PATIENCE_S) == {"a": b"of a"}
                stream = client._running.io._stream if client._running else None
                if is_lossy and not n % 12 and stream is not None:
                    with suppress(OSError):  # the connection of another thread's round
                        stream.raw.shutdown(socket.SHUT_RDWR)
            for future in later:
                future.result(PATIENCE_S)

        for caller in [begun(work, number) for number in range(8)]:
            assert await settled(caller) is None
        assert is_lossy or server.statistics().connections == 1
    assert len({path for _, path, _ in ledger.created}) == 8 * 50


@on_both_loops
async def test_close_fails_a_waiting_caller_and_a_later_request_opens_another_connection() -> None:
    ledger = Ledger()
    async with client_of(serving(ledger.create)) as (server, client):
        waiting = begun(client.create, ["hold"])
        await until(lambda: "hold" in ledger.begun)
        assert not client.close_if_idle(), "a caller waits for its response"
        thread = thread_of(client)
        await in_thread(client.close)
        assert isinstance(await settled(waiting), Closed)
        assert not thread.is_alive()
        await until(lambda: server.statistics().connections == 0)
        await in_thread(client.create, ["again"])


@on_both_loops
async def test_a_caller_with_its_response_can_close_at_once() -> None:
    async with serving(Ledger().create) as server:
        client = client_for(server.address(INSTANT), INSTANT, PATIENCE_S)
        for _ in range(20):
            await in_thread(client.create, ["first"])
            thread = thread_of(client)

            def work() -> bool:
                client.create(["a"])
                return client.close_if_idle()

            assert await in_thread(work)
            assert not thread.is_alive()


@on_both_loops
async def test_a_callback_finds_its_client_idle_and_may_close_it() -> None:
    async with serving(Ledger().create) as server:
        client = JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S)
        await in_thread(client.create, ["first"])
        thread = thread_of(client)
        found: Future[bool] = Future()
        client.request(["a"]).add_done_callback(lambda _: found.set_result(client.close_if_idle()))
        assert await in_thread(found.result, PATIENCE_S)
        await until(lambda: not thread.is_alive())


def test_a_request_that_the_loop_is_accepting_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the inbox and the pending requests a connection must not be closed as idle."""
    io = ThreadIo()
    connection = ClientConnection(ServiceAddress("127.0.0.1", 1, bytes(32)), INSTANT, io, Random(1))
    add, closed, closers = PendingRequests.add, list[bool](), list[threading.Thread]()

    def slowly(self: PendingRequests, request: AnyPending) -> None:
        closers.append(threading.Thread(target=lambda: closed.append(connection.stop_if_idle())))
        closers[0].start()
        closers[0].join(0.2)  # it decides by now, or waits until the request is pending
        add(self, request)

    monkeypatch.setattr(PendingRequests, "add", slowly)
    assert connection.submit(PendingMarkers(("a",), time.monotonic() + PATIENCE_S))
    connection._accept_requests()
    closers[0].join(PATIENCE_S)
    io.close()
    assert closed == [False]


@on_both_loops
async def test_an_idle_connection_notices_its_end_and_the_end_of_the_job() -> None:
    for shutdown_error in (None, Sealed("the job has ended")):
        async with serving(Ledger().create, shutdown_error=shutdown_error) as server:
            client = JobClient(server.address(INSTANT), INSTANT, wait_s=1000)
            await in_thread(client.create, ["first"])
            stream = client._running.io._stream if client._running else None
            assert stream is not None
        await until(lambda stream=stream: stream.raw.fileno() == -1)  # type: ignore[misc]
        if shutdown_error is not None:
            assert isinstance(await settled(begun(client.create, ["late"])), Sealed)
        await in_thread(client.close)


@on_both_loops
async def test_the_loop_sleeps_while_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, rounds, accept = Ledger(), list[ClientConnection](), ClientConnection._accept_requests

    def noted(connection: ClientConnection) -> bool:
        rounds.append(connection)
        return accept(connection)

    monkeypatch.setattr(ClientConnection, "_accept_requests", noted)
    async with client_of(serving(ledger.create)) as (_, client):
        waiting = begun(client.create, ["hold"])
        await until(lambda: "hold" in ledger.begun)
        await in_thread(client.create, ["quick"])
        for is_waiting in (True, False):
            rounds.clear()
            await anyio.sleep(0.2)  # a busy loop would have thousands of rounds
            assert len(rounds) <= 2, f"a caller waits: {is_waiting}"
            ledger.released.set()
            assert await settled(waiting) is None


def test_one_byte_wakes_a_thread_however_often_it_is_woken() -> None:
    """A byte left in the socket would end each later wait at once."""
    io = ThreadIo()
    for _ in range(2):
        for _ in range(1000):
            io.wake()
        run_blocking(io.wait(PATIENCE_S))
        assert not io._wake_poll.poll(0)
    io.close()
    io.wake()  # after the end of the thread: ignored


def test_a_coroutine_that_suspends_is_an_error() -> None:
    async def suspends() -> None:
        await anyio.lowlevel.checkpoint()

    async def main() -> None:
        with pytest.raises(RuntimeError, match="does not block"):
            run_blocking(suspends())

    anyio.run(main, backend="trio")
