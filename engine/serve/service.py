"""The whole of ``tallymark serve``: its listeners, for as long as a block lasts."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio

from tallymark.backends.options import StorageOptions
from tallymark.engine.background import background_tasks
from tallymark.engine.serve.hudi_service import serve_hudi
from tallymark.engine.serve.job_service import serve_jobs
from tallymark.engine.settings import HudiServiceSettings, JobServiceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What is served, where."""

    roots: Sequence[str]
    options: StorageOptions
    jobs: JobServiceSettings
    hudi: HudiServiceSettings
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Where it listens, as host and port."""

    jobs: str
    hudi: str
    ending: anyio.Event
    """To be set when it is about to end."""


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[Served]:
    """Serve until the block ends. Raises InvalidRequest for what cannot be served."""
    ending = anyio.Event()
    async with background_tasks() as tasks:
        roots, options = service.roots, service.options
        hudi_host, hudi_port = await tasks.start(partial(serve_hudi, roots, service.hudi, options=options))
        jobs = partial(serve_jobs, roots, service.secret, service.jobs, options=options, ending=ending)
        host, port = await tasks.start(jobs)
        yield Served(jobs=f"{host}:{port}", hudi=f"{hudi_host}:{hudi_port}", ending=ending)
