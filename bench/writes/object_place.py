"""S3: the harness's own server, which takes its time, or a store of the user's."""

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import anyio

from tallymark.backends import InvalidPath, StorageOptions, open_backend
from tallymark.bench.folder import FOLDER, removing
from tallymark.bench.hadoop_aws import CONNECTORS
from tallymark.bench.jars import BARE, BARE_CONF
from tallymark.bench.loopback import seen, server
from tallymark.bench.loopback.objects import BUCKET
from tallymark.bench.writes.place import WritePlace

REMOVAL_S_MAX = 600.0
"""How long removing what was made may take: some ten thousand files."""

KEPT_BYTES_MAX = 1 << 25
"""Of the harness's own server: the logs of all formats have to be read again, with 16,500 files in a commit."""

LOOPBACK_REGION = "us-east-1"

LOOPBACK_KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_EC2_METADATA_DISABLED": "true"}
"""What a client signs with; it is not checked."""


@contextmanager
def far_away(latency_s: float) -> Iterator[WritePlace]:
    """The harness's own server, which waits so long before each answer. It keeps no large bodies."""
    with server(latency_s, kept_bytes_max=KEPT_BYTES_MAX) as endpoint:
        yield WritePlace(
            kind="s3",
            title="S3",
            where=f"a server of this harness, {latency_s * 1000:.0f} ms a request, any bandwidth, copies at once",
            url=f"s3a://{BUCKET}/writes",
            jars=BARE,
            connectors=CONNECTORS,
            conf=_conf(StorageOptions(endpoint=endpoint, region=LOOPBACK_REGION, path_style=True)),
            environment=LOOPBACK_KEYS,
            can_read=False,
            seen=partial(seen, endpoint),
        )


@contextmanager
def bucket(url: str, options: StorageOptions) -> Iterator[WritePlace]:
    """Below the URL. Credentials are found in the environment, by our side and by Hadoop's connector."""
    if options.profile or options.credentials:
        raise InvalidPath("Hadoop's connector is given credentials by the environment only: set AWS_ACCESS_KEY_ID, ...")
    root = f"s3a{url[url.index(':') :].rstrip('/')}/{FOLDER}{secrets.token_hex(6)}"
    backend = open_backend(root, options=options)

    async def remove() -> None:
        with removing(root), anyio.CancelScope(shield=True), anyio.fail_after(REMOVAL_S_MAX):
            await backend.delete([entry.path async for entry in backend.list("")])

    try:
        where = f"{url} at {options.endpoint}" if options.endpoint else url
        conf = _conf(options)
        yield WritePlace(
            kind="s3",
            title="S3",
            where=where,
            url=root,
            jars=BARE,
            connectors=CONNECTORS,
            conf=conf,
            environment=_keys(),
        )
    finally:
        anyio.run(remove, backend="trio")


def _conf(options: StorageOptions) -> Mapping[str, str]:
    """How Hadoop's connector reaches the store; our side reads it there, too."""
    found = {
        "fs.s3a.endpoint": options.endpoint,
        "fs.s3a.endpoint.region": options.region,
        "fs.s3a.path.style.access": None if options.path_style is None else str(options.path_style).lower(),
    }
    return BARE_CONF | {f"spark.hadoop.{name}": value for name, value in found.items() if value is not None}


def _keys() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
