"""What goes to one peer, by a stream that takes its time."""

import logging
import math
from typing import cast

import anyio
import pytest
from anyio.abc import SocketStream

from tallymark.engine.service.auth import Session
from tallymark.engine.service.frame import FrameReader
from tallymark.engine.service.outgoing import Outgoing
from tallymark.engine.service.wire import Ack, Answer, decode_answer
from tests.engine.service.serving import INSTANT
from tests.support.loops import on_both_loops

KEY = bytes(range(32))
TIMEOUT_S = 0.25


class Stream:
    """Takes nothing before it is let."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.is_open = anyio.Event()
        self.is_gone = False

    async def send(self, data: bytes) -> None:
        self.writes.append(data)
        await self.is_open.wait()
        if self.is_gone:
            raise anyio.BrokenResourceError


def outgoing(stream: Stream, scope: anyio.CancelScope) -> Outgoing:
    session = Session(KEY, is_server=True)
    return Outgoing(cast("SocketStream", stream), session, instant=INSTANT, timeout_s=TIMEOUT_S, scope=scope)


def heard(writes: list[bytes]) -> list[list[Answer]]:
    """The answers in each write, as the peer verifies them."""
    peer, reader = Session(KEY, is_server=False), FrameReader(1000, setting="of the test")
    return [[decode_answer(peer.verify(frame)) for frame in reader.feed(data)] for data in writes]


@on_both_loops
async def test_answers_that_are_posted_during_a_write_leave_with_the_next_one() -> None:
    stream, sent = Stream(), list[int]()
    async with anyio.create_task_group() as tasks:
        out = outgoing(stream, tasks.cancel_scope)
        for number in range(1, 6):
            tasks.start_soon(out.post, [Ack(number)], sent.append)
            await anyio.wait_all_tasks_blocked()
        assert sent == []
        stream.is_open.set()
    assert heard(stream.writes) == [[Ack(1)], [Ack(2), Ack(3), Ack(4), Ack(5)]]
    assert sent == [1, 4]
    assert tasks.cancel_scope.deadline == math.inf


@on_both_loops
async def test_answers_that_are_posted_at_the_same_moment_leave_with_one_write() -> None:
    stream, sent = Stream(), list[int]()
    stream.is_open.set()
    async with anyio.create_task_group() as tasks:
        out = outgoing(stream, tasks.cancel_scope)
        for number in range(1, 6):
            tasks.start_soon(out.post, [Ack(number)], sent.append)
    [answers] = heard(stream.writes)
    assert sorted(answer.id for answer in answers) == [1, 2, 3, 4, 5]
    assert sent == [5]


@on_both_loops
async def test_each_is_told_as_sent_once_and_a_later_post_begins_anew() -> None:
    stream, sent = Stream(), list[int]()
    stream.is_open.set()
    out = outgoing(stream, anyio.CancelScope())
    await out.post([Ack(1), Ack(2)], sent.append)
    await out.post([Ack(3)], sent.append)
    assert heard(stream.writes) == [[Ack(1), Ack(2)], [Ack(3)]]
    assert sent == [2, 1]


@on_both_loops
async def test_a_post_and_a_send_keep_the_order_in_which_frames_were_protected() -> None:
    stream = Stream()
    async with anyio.create_task_group() as tasks:
        out = outgoing(stream, tasks.cancel_scope)
        tasks.start_soon(out.send, [Ack(1)])
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(out.post, [Ack(2)], lambda _: None)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(out.send, [Ack(3)])
        await anyio.wait_all_tasks_blocked()
        stream.is_open.set()
    assert heard(stream.writes) == [[Ack(1)], [Ack(2)], [Ack(3)]]


@on_both_loops
async def test_a_peer_that_is_gone_ends_the_connection_and_nobody_waits_for_it() -> None:
    stream = Stream()
    stream.is_gone = True
    stream.is_open.set()
    with anyio.CancelScope() as scope:
        out = outgoing(stream, scope)
        await out.post([Ack(1)], lambda _: None)
        await anyio.sleep_forever()
    assert scope.cancel_called


@on_both_loops
async def test_a_peer_that_does_not_read_in_time_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    stream = Stream()
    with caplog.at_level(logging.INFO), anyio.CancelScope() as scope:
        await outgoing(stream, scope).send([Ack(1)])
    assert scope.cancel_called
    assert "did not read what it was sent within 0.25 s" in caplog.text


@on_both_loops
async def test_a_connection_that_ends_otherwise_in_mid_frame_is_over_and_nothing_is_said_of_its_peer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection = anyio.CancelScope()
    with caplog.at_level(logging.INFO):
        with anyio.move_on_after(0.01):
            await outgoing(Stream(), connection).send([Ack(1)])
    assert connection.cancel_called
    assert caplog.text == ""
