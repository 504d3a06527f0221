"""A lake on a local disk, and clients of its REST interface within this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tallymark.engine.serve.rest.lake_table import id_of
from tallymark.engine.serve.rest.live_jobs import LiveJobs
from tallymark.engine.serve.rest.service import lake_app
from tallymark.engine.serve.roots import Roots
from tallymark.engine.serve.settings import PageSettings
from tallymark.engine.serve.tokens import TokenFile, add_token
from tests.cli.scene import written

SECRET = b"s" * 32


class Tokens:
    """A file of tokens, and each token by a name."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tokens.json"

    def add(self, role: str, *tables: str, **how: Any) -> dict[str, str]:
        """Return the header that presents a new token."""
        return {"Authorization": f"Bearer {add_token(self.path, role, tables, **how)}"}


@asynccontextmanager
async def client_of(
    root: Path, *, tokens: Tokens | None = None, live: LiveJobs | None = None, is_secure: bool = False, **settings: Any
) -> AsyncIterator[httpx.AsyncClient]:
    app = lake_app(
        Roots.of(str(root)),
        SECRET,
        PageSettings(**settings),
        tokens=None if tokens is None else TokenFile(tokens.path),
        is_secure=is_secure,
        live=live,
    )
    async with app as served:
        transport = httpx.ASGITransport(served, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:26757") as client:
            yield client


async def write(folder: Path, *months: int, **how: Any) -> None:
    async with written(folder, *months, **how) as (job, reports):
        await job.commit(reports)


def path_of(folder: Path) -> str:
    return f"/v1/tables/{id_of(str(folder))}"
