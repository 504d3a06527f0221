"""That a simulated connection delivers bytes in order or not at all, as a real one does."""

from functools import partial

import pytest
import trio

from tests.simulation.fault_profile import FaultProfile
from tests.simulation.kernel import Kernel
from tests.simulation.network import Network, Stream
from tests.simulation.process import Process


async def received(stream: Stream) -> bytes:
    """Return all bytes until the end of the connection."""
    data = b""
    changed = trio.Event()
    stream.on_change = lambda: changed.set()
    while True:
        try:
            chunk = stream.recv(100)
        except BlockingIOError:
            await changed.wait()
            changed = trio.Event()
            continue
        except ConnectionResetError:
            return data
        if not chunk:
            return data
        data += chunk


async def ten_frames(kernel: Kernel, faults: FaultProfile) -> bytes:
    network = Network(kernel, faults)
    near, far = Process("near", host="alpha", pid=1), Process("far", host="beta", pid=2)
    one, other = Stream(network, near), Stream(network, far)
    one.peer, other.peer = other, one
    result = []
    async with trio.open_nursery() as nursery:

        async def listen() -> None:
            result.append(await received(other))

        nursery.start_soon(listen)
        for number in range(10):
            try:
                one.send(b"%d" % number)
            except ConnectionResetError:
                break
            await trio.sleep(0.0004)
        await trio.sleep(60)
        one.shut()
    return result[0]


@pytest.mark.parametrize(
    "faults", [FaultProfile(reset=0.2), FaultProfile(unreachable=0.5, unreachable_s=0.002)], ids=["resets", "cuts"]
)
def test_what_is_sent_after_a_lost_frame_is_lost_too(faults):
    arrived = []
    for seed in range(60):
        kernel = Kernel(seed)

        async def main(kernel: Kernel = kernel) -> None:
            arrived.append(await ten_frames(kernel, faults))

        kernel.run(partial(main))
    assert all(b"0123456789".startswith(data) for data in arrived), arrived
    assert len(set(arrived)) > 3
