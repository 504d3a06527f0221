"""Where is measured: stores, each with our backend and a bare library on it, in a new folder that goes at the end.

``place`` says what that is, ``near`` is memory and disks, ``objects`` S3 and GCS, ``hdfs`` HDFS.
"""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import unquote

from tallymark.backends import InvalidPath, StorageOptions
from tallymark.bench.places.near import disk, folders, memory
from tallymark.bench.places.objects import loopback, objects
from tallymark.bench.places.place import Place

__all__ = ["at", "usual", "Place"]


def usual() -> list[AbstractAsyncContextManager[Place]]:
    """Those that need nothing of the user's."""
    return [memory(), *map(disk, folders()), loopback()]


def at(url: str, options: StorageOptions) -> AbstractAsyncContextManager[Place]:
    """The store at a URL that a user gives."""
    scheme, colon, rest = url.partition(":")
    match scheme.lower() if colon else "":
        case "memory":
            return memory()
        case "" | "file":
            return disk(Path(unquote(rest.removeprefix("//")) if colon else url))
        case "s3" | "s3a":
            return objects(url, options, title="S3")
        case "gs":
            return objects(url, options, title="GCS")
        case "hdfs":
            from tallymark.bench.places.hdfs import hdfs

            return hdfs(url, options)
        case _:
            raise InvalidPath(f"{url!r}: this harness has no library to hold that store against")
