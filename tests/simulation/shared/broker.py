"""Commits that a service decides: the library's broker and its messages, on the simulated network and clock."""

from concurrent.futures import Future

import trio

from tallymark.engine.rpc.connection import ClientConnection
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.messages import Commit
from tallymark.engine.rpc.pending_requests import PendingCommit
from tests.simulation.blocking import until_done
from tests.simulation.client import SimulatedIo
from tests.simulation.process import Process
from tests.simulation.scene import Scene


class CommitClient:
    """In place of ``JobClient``: each commit has a connection of its own."""

    def __init__(self, scene: Scene, address: ServiceAddress, name: str, wait_s: float) -> None:
        self._scene = scene
        self._address = address
        self._name = name
        self._wait_s = wait_s

    def commit(self, commit: Commit) -> "Asked":
        process = Process.current()
        assert process is not None
        io = SimulatedIo(self._scene.network, process)
        connection = ClientConnection(
            self._address, self._name, io, self._scene.network.kernel.stream(f"commits of {process.name}")
        )
        io.connection = connection
        request = PendingCommit((), trio.current_time() + self._wait_s, self._wait_s, commit=commit)
        connection.submit(request)
        return Asked(self._scene, connection, request.future)

    def close(self) -> None:
        """Do nothing: no connection outlasts its commit."""


class Asked:
    """A commit that was sent to a service."""

    def __init__(self, scene: Scene, connection: ClientConnection, future: Future[int]) -> None:
        self._scene = scene
        self._connection = connection
        self._future = future

    async def result(self) -> int:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._connection.run)
            await until_done([self._future])
            self._connection.stop()
        is_decided = self._future.exception() is None
        self._scene.mishaps["commit decided by a service" if is_decided else "commit without an answer"] += 1
        return self._future.result()


async def result_of(asked: Asked) -> int:
    """In place of waiting for a thread's future."""
    return await asked.result()
