"""The library's client of the service, ``ClientConnection``, on a simulated network and clock."""

from collections.abc import Sequence
from concurrent.futures import Future

import trio

from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.rpc.connection import ClientConnection
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.pending_requests import PendingMarkers
from tests.simulation.network import Network, Stream
from tests.simulation.process import Process


class Client:
    """A ``MarkerSource``. Start ``run`` in the process that sends the requests."""

    def __init__(
        self, network: Network, process: Process, address: ServiceAddress, instant: str, *, wait_s: float
    ) -> None:
        self._wait_s = wait_s
        self._io = SimulatedIo(network, process)
        self._connection = ClientConnection(
            address, instant, self._io, network.kernel.stream(f"line of {process.name}")
        )
        self._io.connection = self._connection

    def request(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        request = PendingMarkers(tuple(paths), trio.current_time() + self._wait_s, self._wait_s, io)
        self._connection.submit(request)
        return request.future

    async def run(self) -> None:
        await self._connection.run()


class SimulatedIo:
    """A ``ClientIo``."""

    connection: ClientConnection

    def __init__(self, network: Network, process: Process) -> None:
        self.network = network
        self._process = process
        self.woken = trio.Event()

    def time(self) -> float:
        return trio.current_time()

    async def connect(self, host: str, port: int, timeout_s: float) -> "SimulatedStream":
        with trio.move_on_after(timeout_s):
            return SimulatedStream(self, await self.network.dial(self._process, (host, port)))
        raise TimeoutError(f"no connection to {host} within {timeout_s:g} s")

    async def wait(self, timeout_s: float | None) -> None:
        with trio.move_on_after(float("inf") if timeout_s is None else timeout_s):
            await self.woken.wait()
        self.woken = trio.Event()

    def wake(self) -> None:
        self.woken.set()

    def close(self) -> None:
        pass


class SimulatedStream:
    """A ``ByteStream``."""

    def __init__(self, io: SimulatedIo, stream: Stream) -> None:
        self._io = io
        self._stream = stream
        stream.on_change = io.wake

    async def exchange(self, outgoing: bytearray, timeout_s: float | None) -> bytes:
        await trio.lowlevel.checkpoint()
        if outgoing:
            self._stream.send(outgoing)
            outgoing.clear()
        if not self._stream.is_readable:
            await self._io.wait(timeout_s)
        try:
            data = self._stream.recv(1 << 20)
        except BlockingIOError:
            return b""
        if not data:
            raise ConnectionResetError("the service closed the connection")
        return data

    def close(self) -> None:
        if self._stream.peer.lost_frame_count and not self._io.connection.is_idle:
            self._io.network.mishaps["answer lost, asked again"] += 1
        self._stream.shut()
