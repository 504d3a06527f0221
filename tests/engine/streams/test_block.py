"""Streams of threads: rows of many threads share files and commits."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tallymark.engine.errors import Closed, InvalidRequest
from tests.engine.jobs.scene import Store
from tests.engine.streams.test_stream import AT_ONCE, SCHEMA, ids, opened, rows


@pytest.fixture
def memory() -> Store:
    return Store(has_staging=False)


def test_rows_of_threads_are_committed_when_their_calls_return(memory):
    def append(number: int) -> int:
        position = stream.append(rows(number))
        assert number in ids(memory)
        return position

    with (
        opened(memory.backend).stream(schema=SCHEMA, settings=AT_ONCE) as stream,
        ThreadPoolExecutor(8) as threads,
    ):
        positions = list(threads.map(append, range(20)))
    assert ids(memory) == list(range(20))
    assert len(set(positions)) < 20, "they share commits"


def test_a_producer_of_a_thread_may_repeat_a_number(memory):
    for _ in range(2):
        with opened(memory.backend).stream(schema=SCHEMA, settings=AT_ONCE) as stream:
            stream.append(rows(1), producer="meter", sequence=0)
    assert ids(memory) == [1]


def test_errors_reach_the_thread_and_the_block(memory):
    block = opened(memory.backend).stream(schema=SCHEMA, settings=AT_ONCE)
    with suppress(ZeroDivisionError), block as stream:
        with pytest.raises(InvalidRequest, match="ascends"):
            stream.append(rows(1), producer="meter")
        raise ZeroDivisionError
    with pytest.raises(Closed):
        stream.append(rows(2))
    assert ids(memory) == []


def test_a_block_that_cannot_be_opened_raises_and_leaves_no_thread(memory):
    count = threading.active_count()
    block = opened(memory.backend).stream(schema=SCHEMA, partition_by=["nosuch"])
    with pytest.raises(InvalidRequest, match="nosuch"):
        block.__enter__()
    assert threading.active_count() == count
