"""HDFS: a new directory, which goes at the end."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from tallymark.backends import InvalidPath, StorageOptions, open_backend
from tallymark.backends.hdfs import HdfsClient, parse_hdfs
from tallymark.bench.folder import FOLDER, removing
from tallymark.bench.ours import Ours
from tallymark.bench.places.place import Place

if TYPE_CHECKING:
    from hdfs_native import Client

    from tallymark.bench.peers.hdfs import HdfsNative


@asynccontextmanager
async def hdfs(url: str, options: StorageOptions) -> AsyncIterator[Place]:
    """Below a directory that exists. The peer is the client of our backend, with its settings."""
    authority, parent = parse_hdfs(url, url.partition(":")[2])
    client = HdfsClient(authority, options)
    name = f"{FOLDER}{secrets.token_hex(6)}"
    ours = Ours(open_backend(f"{url.rstrip('/')}/{name}", options=options))
    peer = await anyio.to_thread.run_sync(client.call, partial(_peer, url, parent, name), url)
    try:
        yield Place("HDFS", url, ours, peer)
    finally:
        with removing(ours.backend.url), anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(client.call, lambda found: found.delete(f"{parent}/{name}", True), url)


def _peer(url: str, parent: str, name: str, client: "Client") -> "HdfsNative":
    from tallymark.bench.peers.hdfs import HdfsNative

    if parent:
        _check_directory(client, url, parent)
    return HdfsNative(client, f"{parent}/{name}")


def _check_directory(client: "Client", url: str, path: str) -> None:
    try:
        is_directory = client.get_file_info(path).isdir
    except FileNotFoundError:
        is_directory = False
    if not is_directory:
        raise InvalidPath(f"{url} is not a directory; make it first")
