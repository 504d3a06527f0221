"""Connections between simulated processes: bytes in order, each after its time, until the connection breaks.

``Listener``, ``Stream`` and ``Sockets`` implement what the service uses of sockets and of its poll. ``Network.dial`` is
the client's side.
"""

from collections import Counter
from collections.abc import Callable

import trio

from tallymark.engine.rpc.server import READ, WRITE
from tests.simulation.fault_profile import FaultProfile
from tests.simulation.kernel import Kernel
from tests.simulation.process import Process

DEAD_AFTER_S = 30.0
"""By then the system has noticed that a peer does not answer any more."""


class Network:
    def __init__(self, kernel: Kernel, faults: FaultProfile) -> None:
        self.kernel = kernel
        self.faults = faults
        self.chance = kernel.stream("network")
        self.mishaps: Counter[str] = Counter()
        self.frame_count = 0
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._cut_until: dict[tuple[str, str], float] = {}
        self._ports = iter(range(40_000, 60_000))

    def listen(self, process: Process, port: int = 0) -> "Listener":
        address = (process.host, port or next(self._ports))
        listener = Listener(self, address, process)
        self._listeners[address] = listener
        process.on_death.append(listener.vanish)
        return listener

    def forget(self, address: tuple[str, int]) -> None:
        self._listeners.pop(address, None)

    def listens(self, address: tuple[str, int]) -> bool:
        return address in self._listeners

    async def dial(self, process: Process, address: tuple[str, int]) -> "Stream":
        """Connect to a listener. Raises ConnectionRefusedError; waits permanently where the hosts are cut off."""
        await trio.sleep(self.faults.frame_s)
        if self.is_cut(process.host, address[0]):
            await trio.sleep_forever()
        listener = self._listeners.get(address)
        if listener is None:
            raise ConnectionRefusedError(f"nobody listens at {address}")
        near, far = Stream(self, process), Stream(self, listener.process)
        near.peer, far.peer = far, near
        listener.arrived(far)
        return near

    def is_cut(self, one: str, other: str) -> bool:
        """Whether two hosts cannot reach each other now. Drawn again whenever the last cut has ended."""
        faults, pair = self.faults, (min(one, other), max(one, other))
        if not faults.unreachable:
            return False
        now = self.kernel.now
        until = self._cut_until.get(pair, 0.0)
        if abs(until) <= now:
            until = now + faults.unreachable_s * (0.5 + self.chance.random())
            if self.chance.random() >= faults.unreachable:
                until = -until
            else:
                self.mishaps["hosts cut off"] += 1
            self._cut_until[pair] = until
        return until > 0


class Listener:
    def __init__(self, network: Network, address: tuple[str, int], process: Process) -> None:
        self.address = address
        self.process = process
        self._network = network
        self._waiting: list[Stream] = []
        self.on_change: Callable[[], None] | None = None

    @property
    def is_readable(self) -> bool:
        return bool(self._waiting)

    def arrived(self, stream: "Stream") -> None:
        self._waiting.append(stream)
        if self.on_change is not None:
            self.on_change()

    def accept(self) -> tuple["Stream", object]:
        if not self._waiting:
            raise BlockingIOError
        return self._waiting.pop(0), None

    def setblocking(self, _: bool) -> None:
        pass

    def vanish(self) -> None:
        self._network.forget(self.address)

    async def aclose(self) -> None:
        self.vanish()
        for stream in self._waiting:
            stream.shut()


class Stream:
    """One end of a connection."""

    peer: "Stream"

    def __init__(self, network: Network, process: Process) -> None:
        self.process = process
        self._network = network
        self._received = bytearray()
        self._has_ended = False
        self._is_broken = False
        self._is_closed = False
        self._last_arrival = 0.0
        self.lost_frame_count = 0
        """Of what we have sent. As bytes come in order or not at all, all that follows a lost frame is lost, too."""
        self.on_change: Callable[[], None] | None = None
        """Called when there is something to receive, or the connection has ended."""
        process.on_death.append(self._die)

    @property
    def is_readable(self) -> bool:
        return bool(self._received) or self._has_ended or self._is_broken

    def recv(self, max_bytes: int) -> bytes:
        """As of a socket that does not block."""
        if not self._received:
            if self._is_closed or self._is_broken:
                raise ConnectionResetError("the connection is gone")
            if not self._has_ended:
                raise BlockingIOError
        data = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        return data

    def send(self, data: bytes | bytearray) -> int:
        """As of a socket with room for everything."""
        if self._is_closed or self._is_broken:
            raise ConnectionResetError("the connection is gone")
        self._send(bytes(data))
        return len(data)

    def _send(self, data: bytes) -> None:
        network, peer = self._network, self.peer
        network.frame_count += 1
        if self.lost_frame_count:
            self.lost_frame_count += 1
            return
        if network.is_cut(self.process.host, peer.process.host):
            network.kernel.after(DEAD_AFTER_S, self._reset)
            network.kernel.after(DEAD_AFTER_S, peer._reset)
            network.mishaps["frame into a half-open connection"] += 1
            self.lost_frame_count += 1
            return
        if network.faults.reset and network.chance.random() < network.faults.reset:
            network.mishaps["connection reset"] += 1
            network.kernel.after(network.faults.frame_s, self._reset)
            network.kernel.after(network.faults.frame_s, peer._reset)
            if network.chance.random() < 0.5:
                self.lost_frame_count += 1
                return  # with the frame, or right after it
        peer._last_arrival = max(peer._last_arrival, network.kernel.now + network.faults.frame_s)
        network.kernel.at(peer._last_arrival, lambda: peer._arrived(data))

    def shut(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._network.kernel.after(self._network.faults.frame_s, self.peer._ended)

    def close(self) -> None:
        self.shut()

    def shutdown(self, _: int) -> None:
        self.shut()

    def setblocking(self, _: bool) -> None:
        pass

    def setsockopt(self, level: int, option: int, value: int, /) -> None:
        pass

    def _change(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def _arrived(self, data: bytes) -> None:
        self._received += data
        self._change()

    def _ended(self) -> None:
        self._has_ended = True
        self._change()

    def _reset(self) -> None:
        self._is_broken = True
        self._change()

    def _die(self) -> None:
        """Reset the peer when the process has died; its system notifies the peer, unless the hosts are cut off."""
        kernel = self._network.kernel
        cut = self._network.is_cut(self.process.host, self.peer.process.host)
        kernel.after(DEAD_AFTER_S if cut else self._network.faults.frame_s, self.peer._reset)


class Sockets:
    """The service's poll, for ends of connections and for listeners."""

    def __init__(self) -> None:
        self._watched: dict[Stream | Listener, tuple[int, object]] = {}
        self._changed = trio.Event()

    def watch(self, raw: Stream | Listener, _: int, wanted: int, data: object) -> None:
        raw.on_change = self._change if wanted else None
        if wanted:
            self._watched[raw] = wanted, data
        else:
            del self._watched[raw]
        self._change()

    async def wait(self) -> None:
        while not self.ready():
            self._changed = trio.Event()
            await self._changed.wait()
        await trio.lowlevel.checkpoint()

    def ready(self) -> list[tuple[object, int]]:
        found = ((data, self._events(raw, wanted)) for raw, (wanted, data) in self._watched.items())
        return [(data, events) for data, events in found if events]

    def close(self) -> None:
        self._watched.clear()

    def _events(self, raw: Stream | Listener, wanted: int) -> int:
        return wanted & (WRITE | (READ if raw.is_readable else 0))

    def _change(self) -> None:
        self._changed.set()
