"""The task of a flush, in the process of its stream: ``write_task`` without its threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, NoReturn, TypeVar

import pyarrow as pa
import trio

from tallymark.engine.errors import Sealed
from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.rpc.in_process import InProcessMarkers, markers_here
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import TaskWriter
from tallymark.engine.tasks.ticket import WriteTicket
from tests.simulation.blocking import block_on, run_blocking
from tests.simulation.scene import Scene
from tests.simulation.storage import Port

T = TypeVar("T")


class Threads:
    """In place of ``anyio.to_thread``: as a thread, the code cannot be cancelled."""

    @staticmethod
    async def run_sync(code: Callable[..., T], *arguments: object) -> T:
        with trio.CancelScope(shield=True):
            result: T = await run_blocking(partial(code, *arguments))
        return result


def write_stream_task(
    scene: Scene, ticket: WriteTicket, rows: pa.Table, *, task: int, backend: Port, attempt: int = 0
) -> TaskReport:
    with TaskWriter(
        ticket,
        backend,
        _Served(scene, backend, ticket),
        task=task,
        attempt=attempt,
        read=_read_nothing,
        monotonic=lambda: scene.kernel.now,
        pause=lambda seconds: block_on(trio.sleep(seconds)),  # noqa: ASYNC105  # awaited there
        executor=_AtOnce(),
    ) as writer:
        for batch in rows.to_batches():
            writer.write(batch)
        return writer.finish()


class _Served:
    """The markers of the job, recorded as those of other tasks are."""

    def __init__(self, scene: Scene, port: Port, ticket: WriteTicket) -> None:
        self._scene = scene
        self._name = port.process.name
        self._ticket = ticket

    def request(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        request = self._scene.record_request(self._name, self._ticket.instant, paths, io)
        ack: Future[None] = Future()
        ack.add_done_callback(lambda done: self._scene.record_answer(request, done.exception()))
        assert self._ticket.service is not None, "markers of a stream are batched"
        served = markers_here(self._ticket.service)
        assert served is not None, "the job's block lasts longer than its task"
        block_on(self._start(served, ack, paths, io))
        return ack

    async def _start(self, served: InProcessMarkers, ack: Future[None], paths: Sequence[str], io: MarkerIo) -> None:
        """In the task that carries the code, whose process the new one belongs to."""
        try:
            served._start(ack, paths, io)
        except RuntimeError:
            ack.set_exception(Sealed("the job has ended"))


def _read_nothing(path: str) -> NoReturn:
    raise AssertionError(f"a stream fills no file, and reads {path}")


class _AtOnce(Executor):
    """Runs each call where it is submitted."""

    def submit(self, code: Callable[..., T], /, *arguments: Any, **named: Any) -> "Future[T]":
        future: Future[T] = Future()
        try:
            future.set_result(code(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future
