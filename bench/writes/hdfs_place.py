"""HDFS: a new directory below one that exists."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from tallymark.backends import StorageOptions
from tallymark.backends.hdfs import HdfsClient, parse_hdfs
from tallymark.bench.folder import FOLDER, removing
from tallymark.bench.jars import BARE, BARE_CONF
from tallymark.bench.writes.place import WritePlace


@contextmanager
def directory(url: str, options: StorageOptions) -> Iterator[WritePlace]:
    """Spark reaches it with Hadoop's client, our side with hdfs-native; both find their settings as always."""
    authority, parent = parse_hdfs(url, url.partition(":")[2])
    client = HdfsClient(authority, options)
    name = f"{FOLDER}{secrets.token_hex(6)}"
    conf = BARE_CONF | {f"spark.hadoop.{key}": value for key, value in options.hadoop}
    root = f"{url.rstrip('/')}/{name}"
    try:
        yield WritePlace(kind="hdfs", title="HDFS", where=url, url=root, jars=BARE, conf=conf)
    finally:
        with removing(root):
            client.call(lambda found: found.delete(f"{parent}/{name}", True), url)
