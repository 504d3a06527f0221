"""Calls to HDFS that are under way. No HDFS runs here: nothing is connected before it is asked."""

import threading
from typing import Any

import pytest

from tallymark.backends.errors import Unavailable
from tallymark.backends.hdfs import client as hdfs_client
from tallymark.backends.hdfs.client import UNANSWERED_COUNT_MAX, HdfsClient
from tallymark.backends.options import StorageOptions
from tests.support.process import await_that

pytestmark = pytest.mark.slow

pytest.importorskip("hdfs_native", reason="needs the extra [hdfs]")


@pytest.fixture
def client() -> HdfsClient:
    return HdfsClient("127.0.0.1:9", StorageOptions())


@pytest.mark.parametrize("request_count_max", [64, 2 * UNANSWERED_COUNT_MAX])
def test_as_many_calls_as_the_options_allow_are_in_flight_at_once(request_count_max):
    client = HdfsClient("127.0.0.1:9", StorageOptions(request_count_max=request_count_max))
    together = threading.Barrier(request_count_max + 1, timeout=60)
    callers = [
        threading.Thread(target=client.call, args=(lambda _hdfs: together.wait(), "there"))
        for _ in range(request_count_max)
    ]
    for caller in callers:
        caller.start()
    together.wait()
    for caller in callers:
        caller.join()
    assert not together.broken


def test_calls_one_after_another_take_the_same_thread(client):
    threads = {client.call(lambda _hdfs: threading.get_ident(), "there") for _ in range(20)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_a_thread_without_calls_ends(client, monkeypatch):
    monkeypatch.setattr(hdfs_client, "IDLE_S", 0.001)
    thread = client.call(lambda _hdfs: threading.current_thread(), "there")
    thread.join(timeout=30)
    assert not thread.is_alive()
    assert client.call(lambda _hdfs: threading.current_thread(), "there") is not thread


def test_calls_without_an_answer_are_bounded_until_their_answers_arrive():
    client = HdfsClient("127.0.0.1:9", StorageOptions(request_timeout_s=0.001))
    silence = threading.Event()
    ended = threading.Semaphore(0)

    def ask(_hdfs: Any) -> None:
        silence.wait(30)
        ended.release()

    for _ in range(UNANSWERED_COUNT_MAX):
        with pytest.raises(Unavailable, match="no answer within"):
            client.call(ask, "there")
    with pytest.raises(Unavailable, match=f"{UNANSWERED_COUNT_MAX} earlier requests have had no answer"):
        client.call(ask, "there")
    silence.set()
    for _ in range(UNANSWERED_COUNT_MAX):
        assert ended.acquire(timeout=30)
    await_that(lambda: not _is_refused(client), "a call is taken again")


def _is_refused(client: HdfsClient) -> bool:
    try:
        client.call(lambda _hdfs: None, "there", sent=1 << 30)
    except Unavailable:
        return True
    return False
