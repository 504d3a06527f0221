"""Where the library asks the machine it runs on: which process this is, where to listen, how to wait in a thread."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from tallymark.engine.files import markers_ahead
from tallymark.engine.service import server
from tallymark.engine.timeline import log, writer_identity
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.simulation.blocking import wait
from tests.simulation.network import Listener
from tests.simulation.process import Process
from tests.simulation.scene import Scene


@contextmanager
def simulated_machines(scene: Scene) -> Iterator[None]:
    async def listen(_: server.MarkerServer) -> list[Listener]:
        return [scene.network.listen(current())]

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
            (server.MarkerServer, "_listen", listen),
            (server, "_bound_address", lambda listener: listener.address),
            (WriterIdentity, "here", classmethod(here)),
            (writer_identity, "_started", started),
            (writer_identity, "_is_free", lambda pid: started(pid) is None),
            (markers_ahead, "wait", wait),
            (log, "BODY_BYTES", scene.plan.body_bytes),
        ]:
            patches.enter_context(mock.patch.object(target, name, value))
        yield


def current() -> Process:
    process = Process.current()
    assert process is not None, "all code of the library runs in one of the simulated processes"
    return process
