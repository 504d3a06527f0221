"""Stores that markers are measured on, by their URLs."""

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
from tallymark.bench.loopback.connection import DATA_KEPT_BYTES_MAX
from tallymark.bench.loopback.objects import BUCKET

AT_ONCE = 256
"""The most requests of a process in flight: no caller's put waits for another's."""

KEPT_BYTES_MAX = 1 << 30
"""Of the S3 stand-in: merges read segments again."""


@dataclass(frozen=True, slots=True)
class MarkerStore:
    url: str
    where: str
    """What it is, for people."""
    options: StorageOptions = field(default_factory=StorageOptions)
    folder: Path | None = None
    """Of a store on this machine."""
    latency_s: float = 0.0
    """Per request of the S3 stand-in; 0 for other stores."""

    def fields(self) -> dict[str, Any]:
        return {"table": self.url, "options": asdict(self.options)}


def options_of(target: Mapping[str, Any]) -> StorageOptions:
    fields: dict[str, Any] = target["options"]
    return StorageOptions(**{**fields, "hadoop": tuple((key, value) for key, value in fields["hadoop"])})


@contextmanager
def near(parent: Path) -> Iterator[MarkerStore]:
    """Yield a new folder below an existing one."""
    mount = mount_of(parent)
    kind = mount.kind if mount is not None else "unknown file system"
    with new_folder(parent) as folder:
        yield MarkerStore(str(folder / "ours"), f"{kind}, {parent}", folder=folder)


@contextmanager
def far(
    latency_s: float, puts_per_s: float, *, data_kept_bytes_max: int = DATA_KEPT_BYTES_MAX
) -> Iterator[MarkerStore]:
    """Yield the S3 stand-in, with this latency per request and this limit of changed objects per second, if any.

    Larger data files than ``data_kept_bytes_max`` cannot be read.
    """
    provider = f"{credentials.__module__}:{credentials.__name__}"
    limit = f", {puts_per_s:,.0f} puts/s" if puts_per_s else ""
    where = f"S3 stand-in, {latency_s * 1000:g} ms a request{limit}"
    running = server(
        latency_s, puts_per_s=puts_per_s, kept_bytes_max=KEPT_BYTES_MAX, data_kept_bytes_max=data_kept_bytes_max
    )
    with running as endpoint:
        options = StorageOptions(endpoint=endpoint, region="us-east-1", credentials=provider, request_count_max=AT_ONCE)
        yield MarkerStore(f"s3://{BUCKET}/table", where, options, latency_s=latency_s)


@contextmanager
def at(url: str, options: StorageOptions) -> Iterator[MarkerStore]:
    """Yield a new folder at the user's store."""
    path = local_path(url, options)
    if path is not None:
        with near(path) as place:
            yield place
        return
    found = f"{url.rstrip('/')}/{FOLDER}{secrets.token_hex(6)}"
    where = f"{url} at {options.endpoint}" if options.endpoint else url
    place = MarkerStore(found, where, replace(options, request_count_max=AT_ONCE))
    try:
        yield place
    finally:
        with removing(found):
            anyio.run(_remove, place, backend="trio")


def local_path(url: str, options: StorageOptions) -> Path | None:
    """Return the folder of this machine that a URL names, or None for another store. Raises InvalidPath."""
    found = urlsplit(open_backend(url, options=options).url)
    if found.scheme == "memory":
        raise InvalidPath("memory: is a store of one process, and callers are other processes; name a folder")
    if found.scheme != "file":
        return None
    path = Path(unquote(found.path))
    if not path.is_dir():
        raise InvalidPath(f"{path} is not a directory of this machine; make it first")
    return path


async def _remove(place: MarkerStore) -> None:
    backend = open_backend(place.url, options=place.options)
    await backend.delete([entry.path async for entry in backend.list("")])
