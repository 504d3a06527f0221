"""Client of an object store: one method per HTTP request, over obstore's blocking calls.

Owns: sending each request once (the vendor's own retries are off), its time limit, counting it, and translating its
errors. Does not own: what follows an unclear answer (``claim``), retries (``retry``).
"""

import mmap
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

import obstore

from tallymark.backends.contract import PATH_BYTES_MAX, Entry, check_path, check_range
from tallymark.backends.errors import BackendError, InvalidPath, NotPermitted
from tallymark.backends.meter import RequestClass, RequestMeter, RequestStatistics, outcome_of
from tallymark.backends.object_errors import NO_OBJECT_STORE, Verb, is_beyond_end, is_not_the_range, translated
from tallymark.backends.options import StorageOptions

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ObjectStore

T = TypeVar("T")
Data = bytes | memoryview | mmap.mmap

NONCE = "tallymark-nonce"
"""The metadata of an object that distinguishes one writer's put from another's: ``x-amz-meta-``, ``x-goog-meta-``."""

PAGE_COUNT = 1000
"""Entries of a listing, or keys of a delete, in one request: the most that S3 accepts."""

PUT_BYTES_MAX = 5 * 1024**3
"""Largest put that S3 and GCS accept. Larger objects would need an upload in parts, which is more than one request."""

SMALL_BYTES = 64 * 1024
"""Puts up to this size share one timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time limits of requests, after which an outcome counts as unknown."""

    request_s: float
    bytes_per_s_min: float

    @classmethod
    def from_options(cls, options: StorageOptions) -> Self:
        """Return the timeouts of the options."""
        return cls(request_s=options.request_timeout_s, bytes_per_s_min=options.data_bytes_per_s_min)

    def of(self, size: int) -> tuple[int, float]:
        """Return the power of two for puts of this size (0: small ones), and how long those may take."""
        if size <= SMALL_BYTES:
            return 0, self.request_s
        bound = 1 << (size - 1).bit_length()
        return bound, self.request_s + bound / self.bytes_per_s_min


class ObjectClient:
    """Requests below one prefix of one bucket. Threads may share it; each call blocks its thread."""

    def __init__(
        self,
        url: str,
        prefix: str,
        make_store: Callable[[float], "ObjectStore"],
        *,
        timeouts: Timeouts,
        meter: RequestMeter,
        rights: Mapping[Verb, str],
    ) -> None:
        """``url`` and ``prefix`` name the root, the latter as keys begin. ``rights`` name what each verb needs.

        ``make_store`` gives the vendor's store whose requests take that many seconds at most; called when needed.
        """
        self.url = url
        self._prefix = f"{prefix}/" if prefix else ""
        self._make_store = make_store
        self._timeouts = timeouts
        self._meter = meter
        self._rights = rights
        self._stores: dict[int, ObjectStore] = {}
        self._making = threading.Lock()

    def key(self, path: str) -> str:
        """Return the object's key. Raises InvalidPath."""
        key = self._prefix + check_path(path)
        if len(key) > PATH_BYTES_MAX // 4 and len(key.encode()) > PATH_BYTES_MAX:
            raise InvalidPath(f"{self.at(path)}: the key is longer than {PATH_BYTES_MAX} bytes; give shorter names")
        return key

    def at(self, path: str) -> str:
        """Return the URL of the path, for messages."""
        return f"{self.url}/{path}" if path else self.url

    def check_process(self, path: str) -> None:
        """Raise NotPermitted in a child of a process that had sent requests: there they would hang."""
        if os.getpid() != _vendors_process():
            raise NotPermitted(
                f"{self.at(path)}: this process was forked from one that had used object storage, and obstore's "
                "threads stayed there. Start workers by 'spawn' or 'forkserver', such as with "
                "ProcessPoolExecutor(mp_context=multiprocessing.get_context('spawn')), or before storage is used"
            )

    def get(self, path: str) -> bytes:
        """Return the object's bytes. Raises NotFound."""
        key = self.key(path)

        def get() -> bytes:
            return self._stored(obstore.get(self._store(), key), path).bytes().to_bytes()

        return self._request("get", "get", path, get)

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """Return the object's bytes in this range, b"" beyond its end. Raises NotFound.

        Where the store answers without the range, the whole object is read: so it is on a server that ignores ranges,
        and for an empty object on Ceph's gateway.
        """
        key = self.key(path)
        check_range(start, length)

        def get() -> bytes | None:
            try:
                part = obstore.get(self._store(), key, options={"range": (start, start + length)})
            except Exception as error:
                if is_beyond_end(error):
                    return b""
                if is_not_the_range(error):
                    return None
                raise
            return self._stored(part, path).bytes().to_bytes()

        found = self._request("get_range", "get", path, get)
        return self.get(path)[start : start + length] if found is None else found

    def nonce(self, path: str) -> str | None:
        """Return the nonce of the object's writer, or None if it has none. Raises NotFound."""
        key = self.key(path)

        def head() -> str | None:
            return self._stored(obstore.get(self._store(), key, options={"head": True}), path).attributes.get(NONCE)

        return self._request("head", "head", path, head)

    def put(self, path: str, data: Data) -> None:
        """Create or replace the object."""
        self._put("put", path, data, mode="overwrite")

    def put_new(self, path: str, data: Data, nonce: str) -> None:
        """Create the object, with the nonce.

        Raises:
            AlreadyExists: the path is taken, perhaps by an earlier put with this very nonce.
        """
        self._put("put_new", path, data, mode="create", attributes={NONCE: nonce})

    def page(self, directory: str, after: str | None = None) -> tuple[Sequence[Entry], bool]:
        """Return the next objects below the directory, sorted, from beyond that path on; and
        whether there may be more.
        """
        below = self.key(directory) + "/" if directory else self._prefix

        def page() -> Sequence[Mapping[str, Any]]:
            offset = None if after is None else self.key(after)
            pages = obstore.list(self._store(), below.removesuffix("/") or None, offset=offset, chunk_size=PAGE_COUNT)
            return next(iter(pages), ())

        found = self._request("list", "list", directory, page)
        keys = [meta["path"] for meta in found]
        if keys != sorted(keys) or (keys and after is not None and keys[0] <= self.key(after)):
            raise NotPermitted(
                f"{self.at(directory)}: the store lists out of order, as S3's directory buckets do; use another bucket"
            )
        start = len(self._prefix)
        entries = [
            Entry(key[start:], meta["size"], meta["last_modified"].timestamp())
            for key, meta in zip(keys, found, strict=True)
            if key.startswith(below)  # not an object of the directory's own name
        ]
        return entries, len(found) >= PAGE_COUNT

    def folders(self, directory: str) -> Sequence[str]:
        """Return the names of the folders directly below the directory, sorted. The vendor's client reads all pages."""
        below = self.key(directory) + "/" if directory else self._prefix
        started = time.perf_counter()

        def level() -> Mapping[str, Any]:
            return obstore.list_with_delimiter(self._store(), below.removesuffix("/") or None)

        found = self._request("list", "list", directory, level)
        folders = found["common_prefixes"]
        page_count = -(-(len(folders) + len(found["objects"])) // PAGE_COUNT)
        for _ in range(page_count - 1):
            self._meter.record("list", "ok", seconds=(time.perf_counter() - started) / page_count)
        return sorted(folder.rpartition("/")[2] for folder in folders)

    def delete(self, paths: Sequence[str]) -> None:
        """Remove the objects, PAGE_COUNT at most. Of several, absent ones are fine.

        Raises:
            NotFound: it was a single path, and is absent; some stores report this.
        """
        keys = [self.key(path) for path in paths]

        def delete() -> None:
            obstore.delete(self._store(), keys)

        self._request("delete", "delete", paths[0] if len(paths) == 1 else "", delete)

    @property
    def throttled_count(self) -> int:
        """Requests that the store throttled."""
        return self._meter.throttled

    def statistics(self) -> RequestStatistics:
        return self._meter.statistics()

    def _put(self, verb: Verb, path: str, data: Data, **how: Any) -> None:
        key, size = self.key(path), len(data)
        if size > PUT_BYTES_MAX:
            raise NotPermitted(f"{self.at(path)}: {size} bytes are more than one put takes, {PUT_BYTES_MAX}")

        def put() -> None:
            obstore.put(self._store(size), key, data, use_multipart=False, **how)

        self._request("put", verb, path, put, sent=size)

    def _request(
        self, request_class: RequestClass, verb: Verb, path: str, request: Callable[[], T], *, sent: int = 0
    ) -> T:
        """Return what the request returns. It is counted, and its error translated."""
        self.check_process(path)
        started = time.perf_counter()
        try:
            answer = request()
        except BackendError as error:
            failure = error
        except BaseException as error:
            if not _is_vendors(error):
                raise
            failure = translated(error, verb, self.at(path), self._rights)
        else:
            received = len(answer) if isinstance(answer, bytes) else 0
            self._meter.record(request_class, "ok", sent=sent, received=received, seconds=time.perf_counter() - started)
            return answer
        self._meter.record(request_class, outcome_of(failure), sent=sent, seconds=time.perf_counter() - started)
        raise failure  # here, where the vendor's error is not its context: that may repeat a secret

    def _stored(self, found: "GetResult", path: str) -> "GetResult":
        """Return the answer if an object store gave it: a page of another server rarely has an entity tag."""
        if found.meta["e_tag"] is None:
            raise NotPermitted(f"{self.at(path)}: {NO_OBJECT_STORE}")
        return found

    def _store(self, size: int = 0) -> "ObjectStore":
        """Return the vendor's store with the timeout for this many bytes: it has one for all its requests."""
        bound, timeout_s = self._timeouts.of(size)
        store = self._stores.get(bound)
        if store is None:
            with self._making:
                store = self._stores.get(bound)
                if store is None:
                    store = self._stores[bound] = self._make_store(timeout_s)
        return store


@cache
def _vendors_process() -> int:
    """Return the process that used an object store first, where the vendor's threads are.

    Its forks inherit the answer.
    """
    return os.getpid()


def _is_vendors(error: BaseException) -> bool:
    """Return whether the vendor's library raised the error. Its panics are not Exceptions, and have no public class."""
    from obstore.exceptions import BaseError

    return isinstance(error, BaseError | OSError | ValueError) or type(error).__name__ == "PanicException"
