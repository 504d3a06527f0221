"""The bucket: objects with metadata, ``If-None-Match: *``, ranges, copies, listings in pages, bulk deletes."""

import itertools
import json
import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import unquote
from xml.sax.saxutils import escape, unescape

from tallymark.bench.loopback.listing import PAGE_COUNT, Listed, completed, copied, page
from tallymark.bench.loopback.seen import Kind, Seen
from tallymark.bench.loopback.uploads import NAMESPACE, Uploads, error

BUCKET = "bench"

KEPT_BYTES_MAX = 1 << 19
"""Larger bodies are counted and forgotten, and cannot be read: keeping them would be the store's time. Less would not
hold a bulk delete of 1,000 long names."""

_MODIFIED_HTTP = formatdate(1767225600, usegmt=True)
_XML = {"Content-Type": "application/xml"}
_QUOTES = {"&quot;": '"', "&apos;": "'"}
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_KEY = re.compile(rb"<Key>(.*?)</Key>", re.DOTALL)

Reply = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""


@dataclass(frozen=True, slots=True)
class Stored:
    body: bytes | None
    size: int
    headers: dict[str, str]
    """ETag, and the metadata it was put with."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    key: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes | None
    """None if it was too large to be kept."""
    size: int


@dataclass(slots=True)
class Objects:
    """The bucket, and what it answers."""

    stored: dict[str, Stored] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    """Its keys, sorted: a folder among many is listed without a look at the others."""
    uploads: Uploads = field(default_factory=Uploads)
    tags: Iterator[int] = field(default_factory=itertools.count)
    seen: Seen = field(default_factory=Seen)
    """Since it was last asked for."""

    def hold(self, names: Iterable[str]) -> None:
        """Empty objects, a million of which are there at once: they share what is known of them."""
        empty = Stored(b"", 0, {"ETag": self._tag(), "Last-Modified": _MODIFIED_HTTP})
        self.stored.update(dict.fromkeys(names, empty))
        self.names = sorted(self.stored)

    def reply(self, request: Request) -> Reply:
        if "seen" in request.query:
            said, self.seen = self.seen, Seen()
            return 200, {"Content-Type": "application/json"}, json.dumps(said.document()).encode()
        self.seen.count(_kind(request))
        if not request.key:
            return self._of_bucket(request)
        if "uploads" in request.query or "uploadId" in request.query:
            return self._of_upload(request)
        return _METHODS[request.method](self, request)

    def _of_bucket(self, request: Request) -> Reply:
        if "uploads" in request.query:
            return 200, _XML, self.uploads.listed()
        return self._delete_many(request) if "delete" in request.query else self._list(request)

    def _of_upload(self, request: Request) -> Reply:
        """One step of a multipart upload; its last makes the object."""
        match request.method, request.query.get("uploadId", [""])[0]:
            case "POST", "":
                return 200, _XML, self.uploads.begun(request.key, request.headers)
            case "POST", upload if (found := self.uploads.ended(upload)) is not None:
                return 200, _XML, completed(self._store(request.key, found.body, found.size, found.headers))
            case "PUT", upload if self.uploads.add(
                upload, int(request.query["partNumber"][0]), request.size, request.body
            ):
                return 200, {"ETag": self._tag()}, b""
            case "DELETE", upload if self.uploads.ended(upload) is not None:
                return 204, {}, b""
            case _:
                return 404, {}, error("NoSuchUpload")

    def _put(self, request: Request) -> Reply:
        if source := request.headers.get("x-amz-copy-source"):
            return self._copy(request, unquote(source).removeprefix("/").removeprefix(f"{BUCKET}/"))
        if request.headers.get("if-none-match") == "*" and request.key in self.stored:
            return 412, {}, error("PreconditionFailed")
        return 200, {"ETag": self._store(request.key, request.body, request.size, request.headers)}, b""

    def _copy(self, request: Request, source: str) -> Reply:
        found = self.stored.get(source)
        if found is None:
            return 404, {}, error("NoSuchKey")
        tag = self._store(request.key, found.body, found.size, {**found.headers, **request.headers})
        return 200, _XML, copied(tag)

    def _store(self, key: str, body: bytes | None, size: int, headers: dict[str, str]) -> str:
        """Keep an object with the metadata among these headers; returns its tag."""
        self.seen.put(key)
        tag = self._tag()
        kept = {name: value for name, value in headers.items() if name.startswith("x-amz-meta-")}
        if key not in self.stored:
            insort(self.names, key)
        self.stored[key] = Stored(body, size, {"ETag": tag, "Last-Modified": _MODIFIED_HTTP, **kept})
        return tag

    def _get(self, request: Request) -> Reply:
        found = self.stored.get(request.key)
        if request.method == "HEAD":
            return (404, {}, b"") if found is None else (200, {**found.headers, "Content-Length": str(found.size)}, b"")
        if found is None or found.body is None:
            return 404, {}, error("NoSuchKey")
        if asked := _RANGE.fullmatch(request.headers.get("range", "")):
            first, last = int(asked[1]), min(int(asked[2] or found.size), found.size - 1)
            if first > last:
                return 416, {}, error("InvalidRange")
            where = {"Content-Range": f"bytes {first}-{last}/{found.size}"}
            return 206, {**found.headers, **where}, found.body[first : last + 1]
        return 200, found.headers, found.body

    def _delete(self, request: Request) -> Reply:
        self._drop(request.key)
        return 204, {}, b""

    def _delete_many(self, request: Request) -> Reply:
        keys = [unescape(key.decode(), _QUOTES) for key in _KEY.findall(request.body or b"")]
        for key in keys:
            self._drop(key)
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        return 200, {}, f"<DeleteResult {NAMESPACE}>{deleted}</DeleteResult>".encode()

    def _list(self, request: Request) -> Reply:
        prefix, delimiter = (request.query.get(name, [""])[0] for name in ("prefix", "delimiter"))
        after = request.query.get("continuation-token", request.query.get("start-after", [""]))[0]
        count = int(request.query.get("max-keys", [str(PAGE_COUNT)])[0])
        found = list(itertools.islice(self._listed(prefix, delimiter, after), count + 1))
        return 200, _XML, page(BUCKET, prefix, found, count)

    def _listed(self, prefix: str, delimiter: str, after: str) -> Iterator[Listed]:
        """Keys that begin so, sorted; with a delimiter one name for all that go on alike up to it."""
        place = bisect_left(self.names, max(prefix, after))
        while place < len(self.names) and (key := self.names[place]).startswith(prefix):
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            found = self._entry(key) if end < 0 else Listed(key[: end + 1], is_folder=True)
            if found.name > after:
                yield found
            place = bisect_left(self.names, f"{found.name}\U0010ffff") if found.is_folder else place + 1

    def _tag(self) -> str:
        """Return a new entity tag, with a dash as after an upload in parts: no client compares it with the bytes."""
        return f'"{next(self.tags):032x}-1"'

    def _entry(self, key: str) -> Listed:
        return Listed(key, self.stored[key].headers["ETag"], self.stored[key].size)

    def _drop(self, key: str) -> None:
        if self.stored.pop(key, None) is not None:
            del self.names[bisect_left(self.names, key)]


def changed(request: Request) -> int:
    """Objects that it puts or deletes, as a store counts them that limits these."""
    match request.method:
        case "POST" if "delete" in request.query:
            return len(_KEY.findall(request.body or b""))
        case "PUT" | "POST" | "DELETE":
            return 1
        case _:
            return 0


def _kind(request: Request) -> Kind:
    match request.method:
        case "PUT" if "x-amz-copy-source" in request.headers:
            return "copy"
        case "POST" if "delete" in request.query:
            return "delete"
        case "PUT" | "POST":
            return "put"
        case "DELETE":
            return "delete"
        case "HEAD":
            return "head"
        case _:
            return "get" if request.key else "list"


_METHODS: dict[str, Callable[[Objects, Request], Reply]] = {
    "PUT": Objects._put,
    "GET": Objects._get,
    "HEAD": Objects._get,
    "DELETE": Objects._delete,
}
