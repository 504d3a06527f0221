"""S3 and GCS: a new prefix, whose objects go at the end."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from tallymark.backends import StorageOptions, open_backend
from tallymark.backends.gcs import GcsStores
from tallymark.backends.s3 import S3Stores, parse_bucket
from tallymark.bench.case import SAMPLE_BYTES_MAX
from tallymark.bench.folder import FOLDER, removing
from tallymark.bench.loopback import credentials, server
from tallymark.bench.loopback.objects import BUCKET
from tallymark.bench.ours import Ours
from tallymark.bench.peers.objects import Obstore
from tallymark.bench.places.place import REMOVAL_S_MAX, Place


@asynccontextmanager
async def loopback() -> AsyncIterator[Place]:
    """S3 at the harness's own server."""
    with server() as endpoint:
        provider = f"{credentials.__module__}:{credentials.__name__}"
        options = StorageOptions(endpoint=endpoint, region="us-east-1", credentials=provider)
        where = "a server of this harness, no latency"
        async with objects(f"s3://{BUCKET}", options, title="S3", where=where) as place:
            yield place


@asynccontextmanager
async def objects(url: str, options: StorageOptions, *, title: str, where: str | None = None) -> AsyncIterator[Place]:
    """Below the URL. The peer is made with the settings of our backend: endpoint, credentials, timeouts, no retries."""
    root = f"{url.rstrip('/')}/{FOLDER}{secrets.token_hex(6)}"
    bucket, prefix = parse_bucket(root.partition(":")[2])
    stores = GcsStores(bucket, options) if url.lower().startswith("gs:") else S3Stores(bucket, options)
    timeout_s = options.request_timeout_s + SAMPLE_BYTES_MAX / options.data_bytes_per_s_min
    ours = Ours(open_backend(root, options=options))
    if where is None:
        where = f"{url} at {options.endpoint}" if options.endpoint else url
    peer = Obstore(stores.make(timeout_s), prefix)
    try:
        yield Place(title, where, ours, peer)
    finally:
        await _remove(ours)


async def _remove(ours: Ours) -> None:
    """Delete all there is, also when the run was interrupted."""
    with removing(ours.backend.url), anyio.CancelScope(shield=True), anyio.fail_after(REMOVAL_S_MAX):
        await ours.delete([entry.path async for entry in ours.backend.list("")])
