"""A service that answers look-ups, as a process of its own: to be killed, stopped, slowed down, and replaced."""

from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import anyio

from tallymark.backends import open_backend
from tallymark.engine.errors import ServiceUnavailable
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.prepare import read_properties
from tallymark.engine.lookups.served_view import ServedView
from tallymark.engine.rpc import handshake
from tallymark.engine.rpc.dispatcher import BlockOf, Handler
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import CommitSettings, LeaseSettings, ServiceSettings

SECRET = b"known to every life of the service".ljust(40, b".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    url: str
    instant: str
    port: int = 0
    protocol: int = handshake.PROTOCOL
    delay_s: float = 0.0
    """Before each block."""


def serve(line: Connection, plan: Serving) -> None:
    """The program: serves the table's view until it is killed; says its address."""
    vars(handshake)["PROTOCOL"] = plan.protocol
    anyio.run(_serve, line, plan, backend="trio")


async def _serve(line: Connection, plan: Serving) -> None:
    backend = open_backend(plan.url)
    properties = await read_properties(backend)
    assert properties is not None
    handle = TableHandle(backend, CommitSettings(), LeaseSettings())
    view = ServedView(handle.log, partial(handle.view, properties))

    class Views(Handler):
        async def create_markers(self, *_: object) -> None:
            raise ServiceUnavailable("this service has no markers")

        async def look_up(self, job: str, position: int, log_hash: str) -> BlockOf:
            block_of = await view.look_up(position, log_hash)

            async def later(partition: str) -> bytes:
                await anyio.sleep(plan.delay_s)
                return await block_of(partition)

            return later

    async with anyio.create_task_group() as tasks:
        server = JobServer(SECRET, ServiceSettings(port=plan.port), Views())
        await tasks.start(lambda *, task_status: server.run(task_status=task_status))
        line.send(server.address(plan.instant))
