"""A service outside of the drivers: the library's own handler and server, in processes that die and start again."""

from functools import partial
from urllib.parse import urlsplit

import trio

from tallymark.engine.background import background_tasks
from tallymark.engine.errors import ServiceUnavailable
from tallymark.engine.rpc.handshake import COMMITS, ServiceAddress, job_key, job_name
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.serve.job_tables import JobTables
from tallymark.engine.serve.memory import INSTANT_BYTES, TABLE_BYTES, Memory
from tallymark.engine.serve.roots import Roots
from tallymark.engine.settings import MarkerSettings, ServiceSettings, SharedServiceSettings, ViewSettings
from tests.simulation.plan import ServicePlan
from tests.simulation.process import Process
from tests.simulation.scene import Scene
from tests.simulation.storage import Port

SECRET = b"of every service of the run 0123"

FIRST_PORT = 30_000

MARKERS = MarkerSettings(segment_count_max=3, merge_freed_min=1)
"""Segments are merged soon."""

MEMORY_BYTES = TABLE_BYTES + 2 * INSTANT_BYTES
"""Instants are released soon."""


class OneStorage(Roots):
    """All jobs are of one table."""

    def __init__(self, storage: Port) -> None:
        self._storage = storage

    def open(self, place: str, *, scratch: str | None = None) -> Port:
        return self._storage


def start_services(scene: Scene) -> None:
    for number, plan in enumerate(scene.plan.services):
        _start(scene, number, plan, life=0)


def _start(scene: Scene, number: int, plan: ServicePlan, life: int) -> None:
    mishap = plan.lives[life].mishap if life < len(plan.lives) else None
    process = scene.process(f"service{number}.{life}", plan.host, mishap)
    if mishap is not None:
        pause_s = plan.lives[life].pause_s
        process.on_death.append(lambda: scene.kernel.after(pause_s, partial(_restart, scene, number, plan, life + 1)))
    scene.start(process, _serve, scene, process, FIRST_PORT + number)


def _restart(scene: Scene, number: int, plan: ServicePlan, life: int) -> None:
    scene.mishaps["service started again"] += 1
    _start(scene, number, plan, life)


async def _serve(scene: Scene, process: Process, port: int) -> None:
    storage = scene.port(process)
    async with background_tasks() as tasks:
        tables = JobTables(OneStorage(storage), tasks, MARKERS, ViewSettings(), Memory(MEMORY_BYTES, recent_s=0.0))
        await JobServer(SECRET, ServiceSettings(host=process.host, port=port), tables).run()


def settings_of(scene: Scene, number: int) -> SharedServiceSettings:
    """Return what a driver says of the services: the one that it uses."""
    plans = scene.plan.services
    place = number % len(plans)
    return SharedServiceSettings(url=f"https://{plans[place].host}:{FIRST_PORT + place}")


async def simulated_address(
    scene: Scene, settings: SharedServiceSettings, url: str, instant: str = COMMITS
) -> ServiceAddress:
    """As ``shared_address`` and ``commits_address``: the service answers if it runs."""
    place = urlsplit(settings.url)
    host, port = str(place.hostname), int(place.port or 0)
    await trio.sleep(scene.network.faults.frame_s)
    if not scene.network.listens((host, port)):
        raise ServiceUnavailable(f"no answer from {host}")
    return address_at(host, port, job_name(instant, url))


def address_at(host: str, port: int, job: str) -> ServiceAddress:
    return ServiceAddress(host, port, job_key(SECRET, job), job)


def spread(scene: Scene, address: ServiceAddress, number: int) -> ServiceAddress:
    """Return the service that this attempt of a task uses: all have the same secret."""
    plans = scene.plan.services
    if not address.job or len(plans) < 2:
        return address
    place = number % len(plans)
    return address_at(plans[place].host, FIRST_PORT + place, address.job)
