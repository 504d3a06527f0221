import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

import pytest

from tallymark.backends.errors import NotPermitted
from tests.engine.tasks.scene import FLIGHTS, Markers, flights, memory, stored, ticket, write
from tests.support.faulty import FaultyBackend, lost_request
from tests.support.wrapped import WrappedBackend

PATIENCE_S = 20.0
"""After that a test fails whose puts wait for each other."""


class Puts(WrappedBackend):
    """Storage whose puts first do what the test wants, and which counts those in flight."""

    def __init__(self, inner, before: Callable[[str], object]) -> None:
        super().__init__(inner)
        self._before = before
        self._counting = threading.Lock()
        self.in_flight: set[str] = set()
        self.most = 0

    def _publish(self, path, file):
        with self._counting:
            self.in_flight.add(path)
            self.most = max(self.most, len(self.in_flight))
        try:
            self._before(path.partition("/")[0])
            file.publish()
        finally:
            with self._counting:
                self.in_flight.discard(path)


def one_open(**settings):
    """A job that closes a file when the next one is opened."""
    return ticket(FLIGHTS, "month", row_group_bytes=1, open_file_count=1, **settings)


def one_by_one(count):
    """A row of each month, in the order of the months."""
    return [flights([number], months=count) for number in range(count)]


FILE_BYTES = max(file.bytes for file in write(one_open(), one_by_one(6), memory(has_staging=False)).files)


@pytest.mark.parametrize(
    ("settings", "most"),
    [({"publish_count": 3}, 3), ({"publish_bytes": 2 * FILE_BYTES}, 2), ({"publish_bytes": 1}, 1)],
    ids=["of the count", "of the bytes", "a larger one alone"],
)
@pytest.mark.parametrize("has_staging", [True, False])
def test_as_many_files_are_published_at_once_as_the_settings_allow(has_staging, settings, most):
    together = threading.Barrier(most)
    storage = Puts(memory(has_staging=has_staging), lambda _: together.wait(PATIENCE_S))
    report = write(one_open(**settings), one_by_one(6), storage)
    assert storage.most == most
    assert {file.path for file in report.files} == set(stored(storage))


def test_the_files_of_open_partitions_are_published_at_once_at_the_end():
    together = threading.Barrier(6)
    storage = Puts(memory(has_staging=False), lambda _: together.wait(PATIENCE_S))
    assert len(write(ticket(FLIGHTS, "month"), [flights(range(6), months=6)], storage).files) == 6


def test_the_report_has_the_order_in_which_files_were_closed():
    is_last = threading.Event()

    def before(partition):
        if partition == "month=3":
            is_last.set()
        assert partition != "month=1" or is_last.wait(PATIENCE_S)

    report = write(one_open(), one_by_one(3), Puts(memory(has_staging=False), before))
    assert [file.partition for file in report.files] == ["month=1", "month=2", "month=3"]


def test_the_only_file_of_a_task_is_published_in_its_thread(backend):
    class NoThreads(Executor):
        """Its ``submit`` is not implemented."""

    report = write(ticket(), [flights(range(3))], backend, executor=NoThreads())
    assert [file.path for file in report.files] == list(stored(backend))


class Threads(ThreadPoolExecutor):
    def __init__(self) -> None:
        super().__init__(2, "of this test")
        self.is_shut_down = threading.Event()

    def shutdown(self, *options, **named):
        self.is_shut_down.set()
        super().shutdown(*options, **named)


@pytest.mark.parametrize("fails", [True, False], ids=["a put fails", "the task is interrupted"])
def test_an_attempt_that_fails_waits_for_puts_in_flight_and_drops_the_open_file(backend, fails):
    threads = Threads()

    def before(partition):
        if partition == "month=1":  # in flight until the writer leaves
            assert threads.is_shut_down.wait(PATIENCE_S)
        elif fails:
            raise NotPermitted("no")

    def arriving():
        yield from one_by_one(3)
        if not fails:
            raise KeyboardInterrupt

    storage, job = Puts(backend, before), one_open(publish_count=2)
    with pytest.raises(NotPermitted if fails else KeyboardInterrupt):
        write(job, arriving(), storage, executor=threads)
    assert not storage.in_flight
    assert not any(thread.name.startswith("of this test") for thread in threading.enumerate())
    left = {path.partition("/")[0] for path in stored(backend)}
    assert left == ({"month=1"} if fails else {"month=1", "month=2"})


def test_a_name_after_an_unclear_put_is_taken_by_the_thread_of_the_task():
    taking: set[threading.Thread] = set()

    class Watched(Markers):
        def request(self, paths, io="CREATE"):
            taking.add(threading.current_thread())
            return super().request(paths, io)

    faults = [lost_request("publish", f"month={month}/*", nth=1) for month in (1, 3)]
    storage = FaultyBackend(memory(has_staging=False), *faults)
    markers = Watched()
    report = write(one_open(), one_by_one(6), storage, markers)
    assert taking == {threading.current_thread()}
    assert [file.partition for file in report.files] == [f"month={month}" for month in range(1, 7)]
    assert {file.path for file in report.files} == set(stored(storage.inner)) <= markers.acked
    assert len(markers.acked) == 8
