"""``open_backend``: from a URL to a backend, the only place that names concrete stores."""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from tallymark.backends.contract import Backend
from tallymark.backends.errors import InvalidPath
from tallymark.backends.options import StorageOptions
from tallymark.backends.shown import shown

if TYPE_CHECKING:
    from tallymark.backends.object_store import ObjectStoreBackend

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def open_backend(
    url: str | os.PathLike[str], *, options: StorageOptions | None = None, scratch: str | None = None
) -> Backend:
    """Return the storage at a URL. No I/O.

    ``file:///data/flights`` or a plain path is a directory of this machine. ``memory:`` is a new, empty store that
    lives in this process. ``s3://bucket/prefix`` (or ``s3a:``) is a bucket, and so is ``gs://bucket/prefix``;
    prefixes are taken as they are written. ``hdfs://namenode:8020/path`` or ``hdfs://nameservice/path`` is a directory
    of HDFS. ``options`` contain what the URL does not. ``scratch`` is for a path of this machine (``LocalBackend``).

    Raises:
        InvalidPath: a scheme that is not known here, or a URL that lacks what its scheme needs.
        NotInstalled: the store needs a library that is not here; the message names the extra.
    """
    if isinstance(url, os.PathLike):
        return _open_path(os.fspath(url), scratch)
    if not isinstance(url, str):
        raise InvalidPath(f"the URL is {url!r}; give a text such as '/data/flights', or a path")
    match = _SCHEME.match(url)
    if match is None:
        return _open_path(url, scratch)
    scheme = match[1].lower()
    if scheme not in _OPENERS:
        known = ", ".join(f"{name}:" for name in sorted(_OPENERS) if _OPENERS[name] is not _refuse_gcs)
        raise InvalidPath(
            f"{shown(url)}: unknown scheme {scheme!r}; known are {known} and plain paths (one with a colon begins "
            "with './')"
        )
    return _OPENERS[scheme](url, url[match.end() :], options or StorageOptions())


def _open_path(path: str, scratch: str | None = None) -> Backend:
    from tallymark.backends.local import SCRATCH, LocalBackend

    if not path:
        raise InvalidPath("the URL is empty; give a directory, such as '/data/flights'")
    if path == "~" or path.startswith("~/"):
        raise InvalidPath(f"{path!r}: '~' is not expanded, neither here nor by Spark; write the directory out")
    if "\0" in path:
        raise InvalidPath(f"{path!r} has a NUL character; no directory can be named so")
    return LocalBackend(path, scratch=SCRATCH if scratch is None else scratch)


def _open_file(url: str, rest: str, _options: StorageOptions) -> Backend:
    """``rest`` is ``/path``, ``///path`` or ``//localhost/path``; "?" and "#" may be part of a directory's name."""
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, below = rest[2:].partition("/")
        path = slash + below
    if host.lower() not in ("", "localhost") or not path.startswith("/"):
        raise InvalidPath(
            f"{shown(url)}: a file URL names an absolute path of this machine, such as 'file:///data/flights'"
        )
    return _open_path(os.fsdecode(unquote_to_bytes(path)))


def _open_memory(url: str, rest: str, _options: StorageOptions) -> Backend:
    from tallymark.backends.memory import MemoryBackend

    if rest.strip("/"):
        raise InvalidPath(f"{shown(url)}: a memory store has no name; use 'memory:' and pass the backend itself")
    return MemoryBackend()


def _open_s3(url: str, rest: str, options: StorageOptions) -> Backend:
    from tallymark.backends.s3 import S3Backend, parse_bucket

    return _open_bucket(S3Backend, url, *parse_bucket(rest), options)


def _open_gcs(url: str, rest: str, options: StorageOptions) -> Backend:
    from tallymark.backends.gcs import GcsBackend
    from tallymark.backends.s3 import parse_bucket

    return _open_bucket(GcsBackend, url, *parse_bucket(rest, scheme="gs"), options)


def _refuse_gcs(url: str, rest: str, _options: StorageOptions) -> Backend:
    raise InvalidPath(
        f"{shown(url)}: Google's own tools and Hadoop write gs:, and so does Tallymark; use {shown(f'gs:{rest}')}"
    )


def _open_hdfs(url: str, rest: str, options: StorageOptions) -> Backend:
    from tallymark.backends.hdfs import HdfsBackend, HdfsClient, parse_hdfs
    from tallymark.backends.retry import Retries, RetrySettings
    from tallymark.backends.retrying import RetryingBackend

    authority, root = parse_hdfs(url, rest)
    retries = Retries(RetrySettings.of(options), where=f"hdfs:{rest}")
    return RetryingBackend(HdfsBackend(HdfsClient(authority, options), root, options, retries), retries)


def _open_bucket(
    store: "Callable[..., ObjectStoreBackend]", url: str, bucket: str, prefix: str, options: StorageOptions
) -> Backend:
    """Share retries between the store, which repeats its puts-if-absent, and the wrapper for everything else."""
    from tallymark.backends.meter import RequestMeter
    from tallymark.backends.retry import Retries, RetrySettings
    from tallymark.backends.retrying import RetryingBackend

    meter = RequestMeter()
    retries = Retries(RetrySettings.of(options), meter=meter, where=url)
    return RetryingBackend(store(bucket, prefix, options, retries, meter), retries)


_OPENERS: dict[str, Callable[[str, str, StorageOptions], Backend]] = {
    "file": _open_file,
    "gcs": _refuse_gcs,
    "gs": _open_gcs,
    "hdfs": _open_hdfs,
    "memory": _open_memory,
    "s3": _open_s3,
    "s3a": _open_s3,
}
