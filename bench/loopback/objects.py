"""The bucket: objects with metadata, ``If-None-Match: *``, listings in pages, bulk deletes."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from xml.sax.saxutils import escape, unescape

BUCKET = "bench"

PAGE_COUNT = 1000
"""Entries of a page of a listing, as S3's."""

KEPT_BYTES_MAX = 1 << 19
"""Larger bodies are counted and forgotten, and cannot be read: keeping them would be the store's time. Less would not
hold a bulk delete of 1,000 long names."""

_MODIFIED = "2026-01-01T00:00:00.000Z"
_MODIFIED_HTTP = formatdate(1767225600, usegmt=True)
_NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
_QUOTES = {"&quot;": '"', "&apos;": "'"}
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
    tags: Iterator[int] = field(default_factory=itertools.count)

    def reply(self, request: Request) -> Reply:
        if not request.key:
            return self._delete_many(request) if "delete" in request.query else self._list(request)
        return _METHODS[request.method](self, request)

    def _put(self, request: Request) -> Reply:
        if request.headers.get("if-none-match") == "*" and request.key in self.stored:
            return 412, {}, _error("PreconditionFailed")
        tag = {"ETag": f'"{next(self.tags):032x}"'}
        kept = {name: value for name, value in request.headers.items() if name.startswith("x-amz-meta-")}
        headers = {**tag, "Last-Modified": _MODIFIED_HTTP, **kept}
        self.stored[request.key] = Stored(request.body, request.size, headers)
        return 200, tag, b""

    def _get(self, request: Request) -> Reply:
        found = self.stored.get(request.key)
        is_head = request.method == "HEAD"
        if found is None or (found.body is None and not is_head):
            return 404, {}, b"" if is_head else _error("NoSuchKey")
        return 200, found.headers, found.body or b""

    def _delete(self, request: Request) -> Reply:
        self.stored.pop(request.key, None)
        return 204, {}, b""

    def _delete_many(self, request: Request) -> Reply:
        keys = [unescape(key.decode(), _QUOTES) for key in _KEY.findall(request.body or b"")]
        for key in keys:
            self.stored.pop(key, None)
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        return 200, {}, f"<DeleteResult {_NAMESPACE}>{deleted}</DeleteResult>".encode()

    def _list(self, request: Request) -> Reply:
        prefix = request.query.get("prefix", [""])[0]
        after = request.query.get("continuation-token", request.query.get("start-after", [""]))[0]
        keys = sorted(key for key in self.stored if key.startswith(prefix) and key > after)
        page = keys[:PAGE_COUNT]
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if len(keys) > len(page) else ""
        return 200, {"Content-Type": "application/xml"}, _page(prefix, [(key, self.stored[key]) for key in page], more)


_METHODS: dict[str, Callable[[Objects, Request], Reply]] = {
    "PUT": Objects._put,
    "GET": Objects._get,
    "HEAD": Objects._get,
    "DELETE": Objects._delete,
}


def _page(prefix: str, found: list[tuple[str, Stored]], more: str) -> bytes:
    contents = "".join(
        f"<Contents><Key>{escape(key)}</Key><LastModified>{_MODIFIED}</LastModified>"
        f"<ETag>{escape(stored.headers['ETag'])}</ETag><Size>{stored.size}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
        for key, stored in found
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult '
        f"{_NAMESPACE}><Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(found)}</KeyCount>"
        f"<MaxKeys>{PAGE_COUNT}</MaxKeys><IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}"
        f"{contents}</ListBucketResult>"
    ).encode()


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
