"""Where is measured: a store with our backend and a bare library on it, in a folder of its own that goes at the end."""

import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import anyio
import anyio.to_thread

from tallymark.backends import BackendError, InvalidPath, StorageOptions, Unavailable, open_backend
from tallymark.backends.gcs import GcsStores
from tallymark.backends.s3 import S3Stores, parse_bucket
from tallymark.bench.case import SAMPLE_BYTES_MAX
from tallymark.bench.loopback import credentials, server
from tallymark.bench.loopback.objects import BUCKET
from tallymark.bench.machine import file_system
from tallymark.bench.ours import Ours
from tallymark.bench.peers import Peer
from tallymark.bench.peers.dictionary import Dictionary
from tallymark.bench.peers.disk import Disk
from tallymark.bench.peers.objects import Obstore

FOLDER = "tallymark-bench-"
"""Begins the name of what is made on a user's store."""

REMOVAL_S_MAX = 120.0
"""How long removing it may take: some thousand small objects at most."""

LOCAL_BYTES_MIN = 512 * 1024 * 1024
"""Free space without which a directory is left out of the default run: four times the largest sample."""


@dataclass(frozen=True, slots=True)
class Place:
    title: str
    where: str
    """What stands behind it: a file system, a server."""
    ours: Ours
    peer: Peer
    has_hop: bool = True
    """Whether an asynchronous program would call the peer in a thread; else it is a floor, and no bar is held to it."""


@asynccontextmanager
async def memory() -> AsyncIterator[Place]:
    yield Place(
        "memory", "this process; the floor of the harness", Ours(open_backend("memory:")), Dictionary(), has_hop=False
    )


@asynccontextmanager
async def disk(parent: Path) -> AsyncIterator[Place]:
    if not parent.is_dir():
        raise InvalidPath(f"{parent} is no directory of this machine; make it first")
    folder = Path(tempfile.mkdtemp(prefix=FOLDER, dir=parent))
    try:
        where = f"{file_system(parent.resolve())}, {parent}"
        yield Place("local", where, Ours(open_backend(folder)), Disk(folder))
    finally:
        shutil.rmtree(folder)


def local_folders() -> list[Path]:
    """The temporary directory, and before it one in memory, where syncing takes no time and our own cost shows."""
    folders = [Path("/dev/shm"), Path(tempfile.gettempdir())]  # noqa: S108 the machine's, not a file of ours
    return [folder for folder in folders if folder.is_dir() and shutil.disk_usage(folder).free > LOCAL_BYTES_MIN]


@asynccontextmanager
async def loopback() -> AsyncIterator[Place]:
    with server() as endpoint:
        options = StorageOptions(
            endpoint=endpoint, region="us-east-1", credentials=f"{credentials.__module__}:credentials"
        )
        async with objects(
            f"s3://{BUCKET}", options, title="S3", where="a server of this harness, no latency"
        ) as place:
            yield place


@asynccontextmanager
async def objects(url: str, options: StorageOptions, *, title: str, where: str) -> AsyncIterator[Place]:
    """A new prefix below the URL, whose objects go at the end."""
    root = f"{url.rstrip('/')}/{FOLDER}{secrets.token_hex(6)}"
    bucket, prefix = parse_bucket(root.partition(":")[2])
    stores = GcsStores(bucket, options) if url.lower().startswith("gs:") else S3Stores(bucket, options)
    timeout_s = options.request_timeout_s + SAMPLE_BYTES_MAX / options.data_bytes_per_s_min
    ours = Ours(open_backend(root, options=options))
    try:
        yield Place(title, where, ours, Obstore(stores.make(timeout_s), prefix))
    finally:
        await _removed(ours)


@asynccontextmanager
async def hdfs(url: str, options: StorageOptions) -> AsyncIterator[Place]:
    """A new directory below the URL, which goes at the end."""
    from hdfs_native import Client

    from tallymark.bench.peers.hdfs import HdfsNative

    root = f"{url.rstrip('/')}/{FOLDER}{secrets.token_hex(6)}"
    authority, _, path = root.partition("://")[2].partition("/")
    client = Client(f"hdfs://{authority}", dict(options.hadoop))
    ours = Ours(open_backend(root, options=options))
    try:
        yield Place("HDFS", url, ours, HdfsNative(client, f"/{path}"))
    finally:
        with anyio.CancelScope(shield=True), anyio.fail_after(REMOVAL_S_MAX):
            await anyio.to_thread.run_sync(client.delete, f"/{path}", True)


def _where(url: str, options: StorageOptions) -> str:
    return f"{url} at {options.endpoint}" if options.endpoint else url


async def _removed(ours: Ours) -> None:
    """Delete all there is, also when the run was interrupted."""
    try:
        with anyio.CancelScope(shield=True), anyio.fail_after(REMOVAL_S_MAX):
            await ours.delete([entry.path async for entry in ours.backend.list("")])
    except (BackendError, TimeoutError) as error:
        raise Unavailable(
            f"what was made below {ours.backend.url} could not be removed, please do ({error})"
        ) from error


def at(url: str, options: StorageOptions) -> AbstractAsyncContextManager[Place]:
    """The store at a URL that a user gives."""
    scheme, colon, rest = url.partition(":")
    match scheme.lower() if colon else "":
        case "memory":
            return memory()
        case "" | "file":
            return disk(Path(unquote(rest.removeprefix("//")) if colon else url))
        case "s3" | "s3a":
            return objects(url, options, title="S3", where=_where(url, options))
        case "gs":
            return objects(url, options, title="GCS", where=_where(url, options))
        case "hdfs":
            return hdfs(url, options)
        case _:
            raise InvalidPath(f"{url!r}: this harness has no library to hold that store against")
