"""Programs that reach the service's port without a job's key: they neither keep tasks out nor fill the log."""

import logging
import re
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tallymark.engine.rpc.frames import encode_frame
from tallymark.engine.rpc.handshake import NONCE_BYTES, ServiceAddress
from tallymark.engine.rpc.messages import Ack, pack
from tallymark.engine.rpc.server import connections_max
from tallymark.engine.settings import ServiceSettings
from tests.engine.rpc.serving import INSTANT, Ledger, Peer, ask, exchange, in_thread, is_well, serving, until
from tests.support.loops import on_both_loops


@contextmanager
def silent_connections(address: ServiceAddress, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection((address.host, address.port))) for _ in range(count)]


@on_both_loops
async def test_the_earliest_stranger_is_disconnected_for_another_peer() -> None:
    async with serving(Ledger().create, handshake_count=4, handshake_timeout_s=3600) as server:
        with silent_connections(server.address(INSTANT), 4) as strangers:
            await until(lambda: server.statistics().connections == 4)
            await is_well(server)
            assert await in_thread(strangers[0].recv, 1) == b""
            assert (server.statistics().refused_connections, server.statistics().connections) == (1, 3)


@on_both_loops
async def test_a_task_that_has_named_its_job_outlasts_strangers_that_connect_at_once() -> None:
    """They are all waiting to be accepted before the server runs."""
    async with serving(Ledger().create, handshake_count=16, handshake_timeout_s=3600) as server:
        address = server.address(INSTANT)
        with Peer(address, is_begun_only=True) as peer, silent_connections(address, 60):
            await until(lambda: server.statistics().refused_connections == 60 + 1 - 16)
            await in_thread(peer.authenticate)
            assert await in_thread(peer.say(ask(1, "a")).hear, 1) == [Ack(1)]


@on_both_loops
async def test_many_strangers_leave_room_for_a_task_and_its_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 1000))
    async with serving(Ledger().create, handshake_timeout_s=3600) as server:
        with silent_connections(server.address(INSTANT), 25):
            await until(lambda: server.statistics().refused_connections == 15)
            assert server.statistics().connections == 10
            await is_well(server)


@on_both_loops
async def test_a_stranger_does_not_take_the_place_of_a_task() -> None:
    async with serving(Ledger().create, connection_count=1) as server:
        with await in_thread(Peer, server.address(INSTANT)) as peer:
            with silent_connections(server.address(INSTANT), 3) as strangers:
                assert [await in_thread(stranger.recv, 1) for stranger in strangers] == [b""] * 3
            assert await in_thread(peer.say(ask(1, "a")).hear, 1) == [Ack(1)]


@on_both_loops
async def test_warnings_about_strangers_are_rare_and_count_those_in_between(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with serving(Ledger().create) as server:
            for _ in range(20):
                await in_thread(exchange, server.address(INSTANT), b"GET / HTTP/1.1\r\n\r\n")
            assert server.statistics().refused_connections == 20
    assert len(re.findall("connection.refused", caplog.text)) == 1


@pytest.mark.parametrize("fields", [("CANARY", INSTANT), ("0.1", "CANARY")], ids=["release", "instant"])
@on_both_loops
async def test_what_a_stranger_has_sent_is_not_in_the_log(
    caplog: pytest.LogCaptureFixture, fields: tuple[str, str]
) -> None:
    release, instant = fields
    hello = encode_frame(pack(16, "tallymark", 2, release, instant, bytes(NONCE_BYTES)))
    with caplog.at_level(logging.DEBUG):
        async with serving(Ledger().create) as server:
            answer = await in_thread(exchange, server.address(INSTANT), hello + encode_frame(pack(18, bytes(32))))
            await until(lambda: server.statistics().refused_connections == 1)
    assert b"tallymark" in answer or b"key does not open" in answer
    assert "CANARY" not in caplog.text
    assert b"CANARY" not in answer


@pytest.mark.parametrize(("descriptors", "most"), [(1024, 512), (65_536, 4096), (resource.RLIM_INFINITY, 4096), (1, 1)])
def test_connections_take_half_of_the_descriptors_at_most(
    monkeypatch: pytest.MonkeyPatch, descriptors: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    assert connections_max(ServiceSettings()) == most
