"""Seams at which the library queries the machine: which process this is, where to listen, how to wait in a thread."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TypeVar
from unittest import mock

import trio

from tallymark.backends import Backend
from tallymark.backends.errors import TallymarkError
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs import changes, file_plan, lost_fills, open_job
from tallymark.engine.jobs.fill_claims import claimed_by_others
from tallymark.engine.markers.direct import create_direct
from tallymark.engine.rpc import commit_broker, server
from tallymark.engine.streams import stream
from tallymark.engine.tasks import marker_prefetch, publisher, small_file_merge
from tallymark.engine.timeline import log, writer_identity
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tallymark.engine.upsert import keys, locate
from tests.history import GaveUp
from tests.simulation.blocking import BlockingLoop, run_blocking, wait
from tests.simulation.network import Listener, Sockets
from tests.simulation.process import Process
from tests.simulation.scene import Scene
from tests.simulation.shared.broker import CommitClient, result_of
from tests.simulation.shared.service import simulated_address
from tests.simulation.together.stream_task import Threads, write_stream_task

T = TypeVar("T")

SEGMENT_BYTES = 100
"""Keys of a segment: about four, so that a task stores several, and a file may be read more than once."""

LOOKUP_BYTES = 8000
"""Of the files of one lookup: a few of them."""


@contextmanager
def simulated_machines(scene: Scene) -> Iterator[None]:
    async def listen(service: server.JobServer) -> list[Listener]:
        return [scene.network.listen(current(), service._settings.port)]

    def here(_: type[WriterIdentity]) -> WriterIdentity:
        process = current()
        return WriterIdentity(
            host=process.host, boot_id=process.host, pid_namespace="", pid=process.pid, started=str(process.pid)
        )

    def started(pid: int) -> str | None:
        process = scene.find(pid)
        return None if process is None or process.has_ended.is_set() else str(pid)

    with ExitStack() as patches:
        for target, name, value in [
            (server.JobServer, "_listen", listen),
            (server, "bound_address", lambda listener: listener.address),
            (server, "raw_socket", lambda listener: listener),
            (server, "Poll", Sockets),
            (open_job, "shared_address", partial(simulated_address, scene)),
            (commit_broker, "commits_address", partial(simulated_address, scene)),
            (commit_broker, "client_for", partial(CommitClient, scene)),
            (commit_broker, "_result", result_of),
            (WriterIdentity, "here", classmethod(here)),
            (writer_identity, "_started", started),
            (writer_identity, "_is_free", lambda pid: started(pid) is None),
            *((module, "wait", wait) for module in (marker_prefetch, publisher, small_file_merge)),
            (lost_fills, "_in_thread", _in_thread),
            (lost_fills, "create_direct", partial(_create_direct, scene)),
            (stream, "to_thread", Threads),
            (stream, "write_task", partial(write_stream_task, scene)),
            (file_plan, "claimed_by_others", partial(_claimed_by_others, scene)),
            *((module, "TaskLoop", BlockingLoop) for module in (keys, locate)),
            *((module, "check_may_block", lambda _: None) for module in (keys, locate)),
            (keys, "SEGMENT_BYTES", SEGMENT_BYTES),
            (locate, "SEGMENT_BYTES", SEGMENT_BYTES),
            (changes, "LOOKUP_BYTES", LOOKUP_BYTES),
            (log, "BODY_BYTES", scene.plan.body_bytes),
            (log, "VERIFY_AFTER_S", log.VERIFY_AFTER_S if scene.plan.seed % 2 else 0.0),
        ]:
            patches.enter_context(mock.patch.object(target, name, value))
        yield


async def _in_thread(code: Callable[..., T], *arguments: object) -> T:
    return await run_blocking(partial(code, *arguments))


async def _claimed_by_others(scene: Scene, handle: TableHandle, instant: str | None) -> frozenset[str]:
    """Some do not heed them: claims are advice."""
    if not current().respects_claims:
        return frozenset()
    claimed = await claimed_by_others(handle, instant)
    scene.mishaps["small files left to others"] += bool(claimed)
    return claimed


async def _create_direct(
    scene: Scene,
    backend: Backend,
    instant: str,
    paths: Sequence[str],
    check_open: Callable[[], Awaitable[None]],
) -> None:
    """The marker of a driver's own file, written down as those of tasks are.

    The driver stops waiting for it where its job is cancelled, as by a heartbeat that finds the instant rolled back.
    """
    request = scene.record_request(current().name, instant, paths)
    try:
        await create_direct(backend, instant, paths, check_open)
    except TallymarkError as error:
        scene.record_answer(request, error)
        raise
    except trio.Cancelled:
        scene.record(GaveUp, request=request)
        raise
    scene.record_answer(request, None)


def current() -> Process:
    process = Process.current()
    assert process is not None, "all code of the library runs in one of the simulated processes"
    return process
