"""The whole of ``tallymark serve``: its listeners, for as long as a block lasts."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from tallymark.backends.errors import TallymarkError
from tallymark.engine.background import background_tasks
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.config import ServeConfig
from tallymark.engine.serve.hudi_service import serve_hudi
from tallymark.engine.serve.job_service import serve_jobs, tls_of, tokens_of
from tallymark.engine.serve.memory import Memory
from tallymark.engine.serve.page_process import PageProcess
from tallymark.engine.serve.secret_file import default_path, read_or_create


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Where it listens, as host and port."""

    jobs: str
    hudi: tuple[str, ...]
    page: str | None
    """URL of the pages; None without them."""
    ending: anyio.Event
    """To be set when it is about to end."""


@asynccontextmanager
async def serving(config: ServeConfig, page: PageProcess | None = None) -> AsyncIterator[Served]:
    """Serve until the block ends; ``page`` is started, too. Raises InvalidRequest for what cannot be served."""
    secret = read_or_create(config.secret or default_path())
    ending, memory = anyio.Event(), Memory(config.service.memory_mb << 20)
    async with background_tasks() as tasks:
        hudi = []
        for listener in config.hudi:
            serve = partial(serve_hudi, listener.roots, listener.settings, markers=config.markers, memory=memory)
            hudi.append("{}:{}".format(*await tasks.start(serve)))
        jobs = partial(
            serve_jobs,
            config.roots,
            secret,
            config.jobs,
            markers=config.markers,
            views=config.views,
            memory=memory,
            ending=ending,
            report=None if page is None else page.report,
        )
        host, port = await tasks.start(jobs)
        address = None if page is None else await tasks.start(page.run)
        yield Served(jobs=config.jobs.url(host, port), hudi=tuple(hudi), page=address, ending=ending)


def check_files(config: ServeConfig) -> list[str]:
    """Return what is wrong with the files that a configuration names. Nothing is created."""
    problems = []
    jobs = config.jobs
    checks: tuple[Callable[[], object], ...] = (
        *(partial(config.roots.open, place) for place in config.roots.places),
        partial(tls_of, jobs),
        partial(tokens_of, jobs),
        lambda: config.secret and config.secret.exists() and read_or_create(config.secret),
        lambda: config.service.audit_log and _check_folder(Path(config.service.audit_log)),
    )
    for check in checks:
        try:
            check()
        except TallymarkError as error:
            problems.append(str(error))
    return problems


def _check_folder(file: Path) -> bool:
    if not file.parent.is_dir():
        raise InvalidRequest(f"setting audit_log={str(file)!r}: there is no folder {file.parent}")
    return True
