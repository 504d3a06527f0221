"""Callers who wait talk to the service themselves, one at a time, beside the line's own thread."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import anyio
import pytest

from tallymark.engine.errors import Closed, InvalidRequest, Sealed, ServiceUnavailable
from tallymark.engine.rpc.ask import AskPart
from tallymark.engine.rpc.client import JobClient, client_for
from tallymark.engine.rpc.connection import Call
from tallymark.engine.rpc.handler import BlockOf
from tallymark.engine.rpc.handshake import Session
from tallymark.engine.rpc.line import Line
from tallymark.engine.rpc.pending_requests import Conversation
from tests.engine.rpc.serving import INSTANT, PATIENCE_S, Ledger, Table, created_by, in_thread, serving, until
from tests.support.loops import on_both_loops


def line_of(client: JobClient) -> Line:
    assert client._line is not None
    return client._line


def is_led(client: JobClient) -> bool:
    """A caller talks."""
    return bool(line_of(client)._talker)


def is_at_rest(client: JobClient) -> bool:
    return line_of(client)._talker is None


async def connected(client: JobClient) -> None:
    """Whoever asks next has the turn."""
    await in_thread(client.create, ["first"])
    await until(lambda: is_at_rest(client))


class Caller:
    """A thread of its own that blocks, and what came of it."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self.outcome: Future[Any] = Future()
        threading.Thread(target=self._run, args=(partial(function, *arguments),), daemon=True).start()

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            self.outcome.set_result(function())
        except BaseException as error:
            self.outcome.set_exception(error)

    async def error(self) -> BaseException | None:
        return await in_thread(self.outcome.exception, PATIENCE_S)


async def error_of(future: Future[Any]) -> BaseException | None:
    return await in_thread(future.exception, PATIENCE_S)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn of the thread is owed to its looking round after a while, and no wait of it goes by unnoticed."""
    monkeypatch.setattr("tallymark.engine.rpc.line.ASIDE_S", 1000.0)
    monkeypatch.setattr("tallymark.engine.rpc.line.DIAL_TIMEOUT_S", 1000.0)


@contextmanager
def hasty_switches() -> Iterator[None]:
    """Threads give way to each other after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.fixture
def listeners(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads that listened, each time that one did."""
    listened: list[int] = []
    listen = Call.listen

    def noted(self: Call, *arguments: Any) -> Any:
        listened.append(threading.get_ident())
        return listen(self, *arguments)

    monkeypatch.setattr(Call, "listen", noted)
    return listened


@on_both_loops
async def test_who_waits_alone_talks_and_wakes_no_other_thread(listeners: list[int]) -> None:
    async with serving(Ledger().create, look_up=Table(a=b"of a").look_up) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=30) as client:
            await connected(client)
            listeners.clear()

            def work() -> None:
                for number in range(20):
                    client.create([f"{number}"])
                    assert client.look_up(7, "hash", ["a"], wait_s=30, is_awaited=True).result(0) == {"a": b"of a"}

            caller = Caller(work)
            assert await caller.error() is None
    assert len(set(listeners[:40])) == 1
    assert 40 <= len(listeners) <= 80, "about once an ask"


@on_both_loops
async def test_who_asks_alone_and_waits_later_sends_and_the_thread_listens(listeners: list[int]) -> None:
    ledger = Ledger()
    async with serving(ledger.create) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=30) as client:
            await connected(client)
            listeners.clear()
            held = client.ask(["hold 1"])
            assert listeners[0] == threading.get_ident()
            asks = [client.ask([f"hold {number}"]) for number in range(2, 100)]
            assert listeners.count(threading.get_ident()) == 1, "those that follow go together"
            ledger.released.set()
            for ask in (held, *asks):
                assert await error_of(ask) is None


@on_both_loops
async def test_no_ask_is_lost_where_turns_pass_between_many_threads() -> None:
    ledger = Ledger()
    async with serving(ledger.create, look_up=Table(a=b"of a").look_up) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S) as client, hasty_switches():

            def work(number: int) -> None:
                later = []
                for n in range(25):
                    client.create([f"{number}/now/{n}"])
                    later.append(client.ask([f"{number}/later/{n}"]))
                    found = client.look_up(7, "hash", ["a"], wait_s=PATIENCE_S, is_awaited=bool(n % 3))
                    assert found.result(PATIENCE_S) == {"a": b"of a"}
                for ask in later:
                    ask.result(PATIENCE_S)

            for caller in [Caller(work, number) for number in range(8)]:
                assert await caller.error() is None
            assert server.statistics().connections == 1
            await until(lambda: is_at_rest(client))
    assert len({path for _, path, _ in ledger.created}) == 8 * 50


@on_both_loops
async def test_who_talks_serves_who_asks_meanwhile_and_the_thread_serves_who_is_left(listeners: list[int]) -> None:
    """The first hold is the talker's own, the second is left behind when that one is answered."""
    released = {"hold 1": anyio.Event(), "hold 2": anyio.Event()}
    begun: list[str] = []

    async def create(instant: str, paths: Sequence[str], io: str) -> None:
        begun.extend(paths)
        if paths[0] in released:
            await released[paths[0]].wait()

    async with serving(create) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S) as client:
            await connected(client)
            talker = Caller(client.create, ["hold 1"])
            await until(lambda: begun[-1] == "hold 1")
            assert is_led(client)
            left = client.ask(["hold 2"])
            await until(lambda: begun[-1] == "hold 2")
            assert await error_of(client.ask(["quick"])) is None
            assert await Caller(client.create, ["quick, too"]).error() is None
            assert not talker.outcome.done()
            released["hold 1"].set()
            assert await talker.error() is None
            assert not left.done()
            released["hold 2"].set()
            assert await error_of(left) is None


@on_both_loops
async def test_who_talks_when_the_connection_is_lost_has_its_answer_by_the_next() -> None:
    first, second = Ledger(), Ledger()
    async with serving(first.create) as server:
        address = server.address(INSTANT)
        client = JobClient(address, INSTANT, wait_s=PATIENCE_S)
        await connected(client)
        talker = Caller(client.create, ["hold"])
        await until(lambda: "hold" in first.begun)
        assert is_led(client)
    second.released.set()
    async with serving(second.create, port=address.port):
        assert await talker.error() is None
        await in_thread(client.create, ["after"])
        await in_thread(client.close)
    assert [path for _, path, _ in second.created] == ["hold", "after"]


@on_both_loops
async def test_who_asks_for_what_no_message_holds_is_told_at_once_though_a_follower_waits() -> None:
    ledger = Ledger()
    async with serving(ledger.create, frame_bytes=2048) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S) as client:
            await connected(client)
            with anyio.fail_after(PATIENCE_S / 2):
                assert isinstance(await Caller(client.create, ["x" * 4096]).error(), InvalidRequest)
                await until(lambda: is_at_rest(client))
                follower = client.ask(["hold"])
                assert isinstance(await Caller(client.create, ["x" * 4096]).error(), InvalidRequest)
            ledger.released.set()
            assert await error_of(follower) is None


@on_both_loops
async def test_a_follower_s_time_is_over_while_the_talker_waits_on() -> None:
    ledger = Ledger()
    async with serving(ledger.create, look_up=_held_look_up) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S) as client:
            await connected(client)
            talker = Caller(client.create, ["hold"])
            await until(lambda: "hold" in ledger.begun)
            for is_awaited in (False, True):
                late = client.look_up(7, "hash", ["a"], wait_s=0.05, is_awaited=is_awaited)
                assert isinstance(await error_of(late), ServiceUnavailable)
            assert is_led(client)
            ledger.released.set()
            assert await talker.error() is None


@on_both_loops
async def test_a_follower_s_time_is_over_after_the_talker_has_gone() -> None:
    ledger = Ledger()
    async with serving(ledger.create, look_up=_held_look_up) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S) as client:
            await connected(client)
            talker = Caller(client.create, ["hold"])
            await until(lambda: "hold" in ledger.begun)
            late = client.look_up(7, "hash", ["a"], wait_s=0.3)
            ledger.released.set()
            assert await talker.error() is None
            assert isinstance(await error_of(late), ServiceUnavailable)


@on_both_loops
async def test_the_talker_s_own_time_is_over() -> None:
    async with serving(Ledger().create, look_up=_held_look_up) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S) as client:
            await connected(client)
            late = await in_thread(partial(client.look_up, 7, "hash", ["a"], wait_s=0.05, is_awaited=True))
            assert isinstance(late.exception(0), ServiceUnavailable)
            await in_thread(client.create, ["after"])


async def _held_look_up(position: int, log_hash: str) -> BlockOf:
    async def hold(partition: str) -> bytes:
        await anyio.sleep_forever()
        raise AssertionError

    return hold


class Interruption:
    """KeyboardInterrupt, once, as soon as the caller who talks comes by: before or after what happens there."""

    def __init__(
        self, client: JobClient, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, *, is_after: bool
    ) -> None:
        self.is_due = True
        original, talker = getattr(owner, name), line_of(client)._talker

        def interrupted(*arguments: Any, **named: Any) -> Any:
            if threading.get_ident() != talker:
                return original(*arguments, **named)
            is_due, self.is_due = self.is_due, False
            result = original(*arguments, **named) if is_after or not is_due else None
            if is_due:
                raise KeyboardInterrupt
            return result

        monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Line, "_take_inbox"),
        (Conversation, "add"),
        (Conversation, "take_requests"),
        (Session, "protect"),
        (Call, "say"),
        (Call, "listen"),
        (Conversation, "receive"),
        (AskPart, "take"),
        (AskPart, "settle"),
    ],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
@on_both_loops
async def test_an_interrupt_of_the_talker_loses_nobody_s_ask(
    owner: type, name: str, is_after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    async with serving(ledger.create) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S) as client:
            await connected(client)
            talker = Caller(client.create, ["hold"])
            await until(lambda: "hold" in ledger.begun)
            Interruption(client, monkeypatch, owner, name, is_after=is_after)
            follower = client.ask(["follower"])
            assert isinstance(await talker.error(), KeyboardInterrupt)
            ledger.released.set()
            assert await error_of(follower) is None
            if owner in (Line, Conversation) and name != "receive":
                assert ledger.begun.count("follower") == 1, "the service had not heard of it"
            assert await Caller(client.create, ["after"]).error() is None
    assert {path for _, path, _ in ledger.created} == {"first", "hold", "follower", "after"}


INTERRUPT = """
import os, signal, sys, threading, time
from tallymark.engine.rpc.address import ServiceAddress
from tallymark.engine.rpc.client import JobClient
from tests.engine.rpc.serving import INSTANT

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so does its child
client = JobClient(ServiceAddress("127.0.0.1", int(sys.argv[1]), bytes.fromhex(sys.argv[2])), INSTANT, wait_s=30)
client.create(["first"])
while client._line._talker is not None:
    time.sleep(0.001)
asks = []

def interrupt():
    while client._line._talker != threading.main_thread().ident:
        time.sleep(0.001)
    asks.append(client.ask(["hold, too"]))
    os.kill(os.getpid(), signal.SIGINT)

other = threading.Thread(target=interrupt)
other.start()
try:
    client.create(["hold"])
except KeyboardInterrupt:
    pass
else:
    sys.exit("not interrupted")
other.join()
client.create(["release"], "APPEND")  # not together with what waits for it
asks[0].result(30)
client.close()
"""

FORK = """
import os, sys, threading, time
from tallymark.engine.rpc import client as module
from tallymark.engine.rpc.address import ServiceAddress
from tests.engine.rpc.serving import INSTANT

address = ServiceAddress("127.0.0.1", int(sys.argv[1]), bytes.fromhex(sys.argv[2]))
parents = module.client_for(address, INSTANT, 5)
parents.create(["first"])
while parents._line._talker is not None:
    time.sleep(0.001)
talker = threading.Thread(target=parents.create, args=(["hold"],))
talker.start()
while not parents._line._talker:
    time.sleep(0.001)
child = os.fork()
if not child:
    childs = module.client_for(address, INSTANT, 5)
    assert childs is not parents
    childs.create(["child"])
    childs.create(["release"])
    os._exit(0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
talker.join(30)
assert not talker.is_alive()
parents.create(["parent again"])
"""


@pytest.mark.parametrize(
    ("program", "made"),
    [
        (INTERRUPT, {"first", "hold", "hold, too", "release"}),
        (FORK, {"first", "hold", "child", "release", "parent again"}),
    ],
    ids=["interrupt", "fork"],
)
@on_both_loops
async def test_a_process_goes_on_after_a_signal_or_a_fork_while_one_talks(program: str, made: set[str]) -> None:
    assert set(await created_by(program)) == made


@on_both_loops
async def test_close_ends_the_talker_s_wait_and_a_later_ask_opens_another_connection() -> None:
    ledger = Ledger()
    async with serving(ledger.create) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S) as client:
            await connected(client)
            talker = Caller(client.create, ["hold"])
            await until(lambda: "hold" in ledger.begun)
            assert not client.close_if_idle(), "the talker waits for an answer"
            line = line_of(client)
            await in_thread(client.close)
            assert isinstance(await talker.error(), Closed)
            assert not line._thread.is_alive()
            await until(lambda: server.statistics().connections == 0)
            await in_thread(client.create, ["again"])


@on_both_loops
async def test_who_has_its_answer_can_close_at_once() -> None:
    async with serving(Ledger().create) as server:
        client = client_for(server.address(INSTANT), INSTANT, PATIENCE_S)
        for _ in range(20):
            await connected(client)
            line = line_of(client)

            def work() -> bool:
                client.create(["a"])
                return client.close_if_idle()

            assert await in_thread(work)
            assert not line._thread.is_alive()


@on_both_loops
async def test_a_callback_finds_its_client_idle() -> None:
    async with serving(Ledger().create) as server:
        client = JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S)
        await connected(client)
        found: Future[bool] = Future()
        client.ask(["a"]).add_done_callback(lambda _: found.set_result(client.close_if_idle()))
        assert await in_thread(found.result, PATIENCE_S)


@on_both_loops
async def test_a_callback_in_the_talker_s_thread_may_close_the_client() -> None:
    ledger = Ledger()
    async with serving(ledger.create) as server:
        client = JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S)
        await connected(client)
        talker = Caller(client.create, ["hold"])
        await until(lambda: "hold" in ledger.begun)
        line = line_of(client)
        client.ask(["quick"]).add_done_callback(lambda _: client.close())
        assert isinstance(await talker.error(), Closed)
        await until(lambda: not line._thread.is_alive())


@on_both_loops
async def test_a_farewell_is_heard_by_who_watches_and_by_who_asks() -> None:
    """After a turn of a caller nobody watches for a while; then the thread does."""
    for has_talked in (False, True):
        async with serving(Ledger().create, farewell=Sealed("the job has ended")) as server:
            client = JobClient(server.address(INSTANT), INSTANT, wait_s=1000)
            await connected(client)
            if has_talked:
                await in_thread(client.create, ["second"])
        assert isinstance(await Caller(client.create, ["late"]).error(), Sealed)
        await in_thread(client.close)


@on_both_loops
async def test_the_end_of_an_idle_connection_is_noticed_some_time_after_the_last_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tallymark.engine.rpc.line.ASIDE_S", 0.05)
    for has_talked in (False, True):
        async with serving(Ledger().create) as server:
            client = JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S)
            await connected(client)
            if has_talked:
                await in_thread(client.create, ["second"])
        line = line_of(client)
        await until(partial(_has_hung_up, line))
        await in_thread(client.close)


def _has_hung_up(line: Line) -> bool:
    return line._call is None


@on_both_loops
async def test_nobody_is_busy_while_there_is_nothing_to_do(listeners: list[int]) -> None:
    ledger = Ledger()
    async with serving(ledger.create) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S) as client:
            await connected(client)
            talker = Caller(client.create, ["hold"])
            await until(lambda: "hold" in ledger.begun)
            follower = client.ask(["quick"])
            assert await error_of(follower) is None
            listeners.clear()
            await anyio.sleep(0.2)  # a busy loop would come round thousands of times
            assert len(listeners) <= 1, "while one waits"
            ledger.released.set()
            assert await talker.error() is None
            listeners.clear()
            await anyio.sleep(0.2)
            assert len(listeners) <= 2, "while nobody does"


@on_both_loops
async def test_many_threads_outlive_lost_connections() -> None:
    async with serving(Ledger().create) as server:
        with JobClient(server.address(INSTANT), INSTANT, wait_s=PATIENCE_S) as client:

            def work(number: int) -> None:
                for n in range(10):
                    client.create([f"{number}/{n}"])
                    if not n % 3 and (call := line_of(client)._call) is not None:
                        with suppress(OSError):  # another thread's was before
                            call._raw.shutdown(socket.SHUT_RDWR)  # the network's doing

            for caller in [Caller(work, number) for number in range(4)]:
                assert await caller.error() is None
