"""The places that are asked for."""

import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import unquote

from tallymark.backends import InvalidPath, StorageOptions
from tallymark.bench.writes.object_place import bucket, far_away
from tallymark.bench.writes.place import WritePlace, local


def asked(
    urls: Sequence[str], options: StorageOptions, latency_ms: float | None
) -> list[AbstractContextManager[WritePlace]]:
    """The stores of the user's and the harness's own S3, as asked for; if nothing is, the temporary directory."""
    found = [at(url, options) for url in urls]
    if latency_ms is not None:
        found.append(far_away(latency_ms / 1000))
    return found or [local(Path(tempfile.gettempdir()))]


def at(url: str, options: StorageOptions) -> AbstractContextManager[WritePlace]:
    """The store at a URL that a user gives."""
    scheme, colon, rest = url.partition(":")
    match scheme.lower() if colon else "":
        case "" | "file":
            return local(Path(unquote(rest.removeprefix("//")) if colon else url))
        case "s3" | "s3a":
            return bucket(url, options)
        case "hdfs":
            from tallymark.bench.writes.hdfs_place import directory

            return directory(url, options)
        case _:
            raise InvalidPath(f"{url!r}: Spark's own writers and ours have no such store in common here")
