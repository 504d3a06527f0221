"""Where markers are kept: a store by its URL, told to processes as JSON."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio

from tallymark.backends import InvalidPath, StorageOptions, open_backend
from tallymark.backends.mounts import mount_of
from tallymark.bench.folder import FOLDER, new_folder, removing
from tallymark.bench.loopback import credentials, server
from tallymark.bench.loopback.objects import BUCKET

AT_ONCE = 256
"""Requests of a process in flight at most: a caller's put waits for no other's."""

KEPT_BYTES_MAX = 1 << 30
"""Of the harness's own server: merges read segments again."""


@dataclass(frozen=True, slots=True)
class MarkerPlace:
    url: str
    where: str
    """What stands behind it, for people."""
    options: StorageOptions = field(default_factory=StorageOptions)
    folder: Path | None = None
    """Of a store that is a folder of this machine."""

    def told(self) -> dict[str, Any]:
        return {"table": self.url, "options": asdict(self.options)}


def options_of(told: Mapping[str, Any]) -> StorageOptions:
    fields: dict[str, Any] = told["options"]
    return StorageOptions(**{**fields, "hadoop": tuple((key, value) for key, value in fields["hadoop"])})


@contextmanager
def near(parent: Path) -> Iterator[MarkerPlace]:
    """A new folder below one that is there."""
    mount = mount_of(parent)
    kind = mount.kind if mount is not None else "unknown file system"
    with new_folder(parent) as folder:
        yield MarkerPlace(str(folder / "ours"), f"{kind}, {parent}", folder=folder)


@contextmanager
def far(latency_s: float, puts_per_s: float) -> Iterator[MarkerPlace]:
    """S3 at the harness's own server, which takes so long for each answer, and lets so many objects be changed."""
    provider = f"{credentials.__module__}:{credentials.__name__}"
    where = f"S3 on a server of this harness, {latency_s * 1000:g} ms a request, {puts_per_s:,.0f} puts/s"
    with server(latency_s, puts_per_s=puts_per_s, kept_bytes_max=KEPT_BYTES_MAX) as endpoint:
        options = StorageOptions(endpoint=endpoint, region="us-east-1", credentials=provider, request_count_max=AT_ONCE)
        yield MarkerPlace(f"s3://{BUCKET}/table", where, options)


@contextmanager
def at(url: str, options: StorageOptions) -> Iterator[MarkerPlace]:
    """A new folder at a store of the user's."""
    path = local_path(url, options)
    if path is not None:
        with near(path) as place:
            yield place
        return
    found = f"{url.rstrip('/')}/{FOLDER}{secrets.token_hex(6)}"
    where = f"{url} at {options.endpoint}" if options.endpoint else url
    place = MarkerPlace(found, where, replace(options, request_count_max=AT_ONCE))
    try:
        yield place
    finally:
        with removing(found):
            anyio.run(_remove, place, backend="trio")


def local_path(url: str, options: StorageOptions) -> Path | None:
    """The folder of this machine that a URL names; None where it names another store. Raises InvalidPath."""
    found = urlsplit(open_backend(url, options=options).url)
    if found.scheme == "memory":
        raise InvalidPath("memory: is a store of one process, and those who ask for markers are others; name a folder")
    if found.scheme != "file":
        return None
    path = Path(unquote(found.path))
    if not path.is_dir():
        raise InvalidPath(f"{path} is no directory of this machine; make it first")
    return path


async def _remove(place: MarkerPlace) -> None:
    backend = open_backend(place.url, options=place.options)
    await backend.delete([entry.path async for entry in backend.list("")])
