"""A model of Google Cloud Storage: the part of its XML API that obstore speaks, in memory, one request at a time.

It is ours, written after Google's reference of the XML API and what obstore 0.12 was seen to send. It shows that our
requests mean what we think they mean; how Google's servers behave it cannot show. Left out: signatures, ACLs, versions
of objects, preconditions on uploads in parts, the JSON API.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from tests.support.services.http_message import Answer, Request

PAGE_KEYS_MAX = 1000
PART_BYTES_MIN = 5 * 1024 * 1024

ONE_WRITE_A_SECOND = "x-tests-one-write-a-second"
"""A header of the request that creates a bucket: this one then has the rule that real ones have."""

EXPIRED, READ_ONLY = "expired", "read-only"
"""Bearer tokens that the model refuses: always, or for writes. It takes any other."""


@dataclass(frozen=True, slots=True)
class Stored:
    data: bytes
    metadata: Mapping[str, str]
    """The headers of its put that its gets repeat: content-type and x-goog-meta-*."""
    generation: int
    modified: datetime

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.data).hexdigest()}"'

    @property
    def headers(self) -> dict[str, str]:
        return {
            "etag": self.etag,
            "last-modified": format_datetime(self.modified, usegmt=True),
            "x-goog-generation": str(self.generation),
            "x-goog-metageneration": "1",
            "accept-ranges": "bytes",
            **self.metadata,
        }


@dataclass(slots=True)
class Upload:
    key: str
    metadata: Mapping[str, str]
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Bucket:
    one_write_a_second: bool
    objects: dict[str, Stored] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    written: dict[str, datetime] = field(default_factory=dict)
    """When each key was last written."""


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str) -> None:
        body = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self.answer = Answer(status, {"content-type": "application/xml"}, body.encode())


class GcsModel:
    """Buckets and what is in them. Its caller sees to it that one request at a time is answered."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._buckets: dict[str, Bucket] = {}
        self._numbers = count(1)

    def answer(self, request: Request) -> Answer:
        address = urlsplit(request.target)
        name, _, key = address.path.lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        try:
            _check_rights(request)
            if not key:
                return self._bucket(request, unquote(name), query)
            return self._object(request, self._found(unquote(name)), unquote(key), query)
        except Refused as refused:
            return refused.answer

    def _found(self, name: str) -> Bucket:
        if name not in self._buckets:
            raise Refused(404, "NoSuchBucket")
        return self._buckets[name]

    def _bucket(self, request: Request, name: str, query: Mapping[str, str]) -> Answer:
        if request.method == "PUT":
            if name in self._buckets:
                raise Refused(409, "BucketAlreadyOwnedByYou")
            self._buckets[name] = Bucket(ONE_WRITE_A_SECOND in request.headers)
            return Answer(200, {}, b"")
        bucket = self._found(name)
        if request.method == "DELETE":
            if bucket.objects:
                raise Refused(409, "BucketNotEmpty")
            del self._buckets[name]
            return Answer(204, {}, b"")
        if request.method == "GET" and "uploads" in query:
            keys = (f"<Key>{escape(upload.key)}</Key>" for upload in bucket.uploads.values())
            return _xml("ListMultipartUploadsResult", *keys)
        if request.method == "GET" and query.get("list-type") == "2":
            return _listing(bucket, query)
        raise Refused(400, "InvalidArgument")

    def _object(self, request: Request, bucket: Bucket, key: str, query: Mapping[str, str]) -> Answer:
        if len(key.encode()) > 1024:
            raise Refused(400, "KeyTooLong")
        if "uploads" in query or "uploadId" in query:
            return self._multipart(request, bucket, key, query)
        if request.method == "PUT":
            return self._put(request, bucket, key)
        stored = _of(bucket, key)
        _check_generation(request, stored)
        if request.method == "DELETE":
            del bucket.objects[key]
            return Answer(204, {}, b"")
        if request.method == "HEAD":
            return Answer(200, {**stored.headers, "content-length": str(len(stored.data))}, b"")
        if request.method == "GET":
            return _got(request, stored)
        raise Refused(405, "MethodNotAllowed")

    def _put(self, request: Request, bucket: Bucket, key: str) -> Answer:
        """From the body, or as a copy; the latter keeps its source's metadata."""
        source = request.headers.get("x-goog-copy-source")
        data, metadata = request.body, _metadata(request)
        if source is not None:
            name, _, theirs = source.lstrip("/").partition("/")
            original = _of(self._found(unquote(name)), unquote(theirs))
            data, metadata = original.data, dict(original.metadata)
        _check_generation(request, bucket.objects.get(key))
        stored = self._store(bucket, key, data, metadata)
        if source is not None:
            return _xml("CopyObjectResult", f"<ETag>{escape(stored.etag)}</ETag>", headers=_outcome(stored))
        return Answer(200, _outcome(stored), b"")

    def _multipart(self, request: Request, bucket: Bucket, key: str, query: Mapping[str, str]) -> Answer:
        if request.method == "POST" and "uploads" in query:
            name = f"upload-{next(self._numbers)}"
            bucket.uploads[name] = Upload(key, _metadata(request))
            return _xml("InitiateMultipartUploadResult", f"<UploadId>{name}</UploadId>")
        name = query["uploadId"]
        if name not in bucket.uploads or bucket.uploads[name].key != key:
            raise Refused(404, "NoSuchUpload")
        if request.method == "PUT":
            bucket.uploads[name].parts[int(query["partNumber"])] = request.body
            return Answer(200, {"etag": f'"{hashlib.md5(request.body).hexdigest()}"'}, b"")
        if request.method == "DELETE":
            del bucket.uploads[name]
            return Answer(204, {}, b"")
        return self._complete(request, bucket, name)

    def _complete(self, request: Request, bucket: Bucket, name: str) -> Answer:
        upload = bucket.uploads[name]
        numbers = [int(each.text or "") for each in ET.fromstring(request.body).iter() if _is_number(each)]
        if any(number not in upload.parts for number in numbers):
            raise Refused(400, "InvalidPart")
        parts = [upload.parts[number] for number in numbers]
        if any(len(part) < PART_BYTES_MIN for part in parts[:-1]):
            raise Refused(400, "EntityTooSmall")
        stored = self._store(bucket, upload.key, b"".join(parts), upload.metadata)
        del bucket.uploads[name]
        return _xml("CompleteMultipartUploadResult", f"<ETag>{escape(stored.etag)}</ETag>", headers=_outcome(stored))

    def _store(self, bucket: Bucket, key: str, data: bytes, metadata: Mapping[str, str]) -> Stored:
        now = self._now()
        last = bucket.written.get(key)
        if bucket.one_write_a_second and last is not None and (now - last).total_seconds() < 1:
            raise Refused(429, "SlowDown")
        bucket.written[key] = now
        bucket.objects[key] = Stored(data, metadata, int(now.timestamp() * 1e6) * 100 + next(self._numbers) % 100, now)
        return bucket.objects[key]


def _check_rights(request: Request) -> None:
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not token:
        raise Refused(403, "AccessDenied")
    if token == EXPIRED:
        raise Refused(401, "AuthenticationRequired")
    if token == READ_ONLY and request.method not in ("GET", "HEAD"):
        raise Refused(403, "AccessDenied")


def _check_generation(request: Request, stored: Stored | None) -> None:
    """0 stands for no object at all."""
    wanted = request.headers.get("x-goog-if-generation-match")
    if wanted is not None and int(wanted) != (stored.generation if stored else 0):
        raise Refused(412, "PreconditionFailed")


def _of(bucket: Bucket, key: str) -> Stored:
    if key not in bucket.objects:
        raise Refused(404, "NoSuchKey")
    return bucket.objects[key]


def _got(request: Request, stored: Stored) -> Answer:
    wanted = request.headers.get("range")
    if wanted is None:
        return Answer(200, stored.headers, stored.data)
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    size = len(stored.data)
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last), size - 1) if first and last else size - 1
    if start > end:
        raise Refused(416, "InvalidRange")
    return Answer(206, {**stored.headers, "content-range": f"bytes {start}-{end}/{size}"}, stored.data[start : end + 1])


def _listing(bucket: Bucket, query: Mapping[str, str]) -> Answer:
    """One page, in the order of the keys' bytes in UTF-8. A token is the last key that was shown."""
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    after = max(query.get("start-after", ""), query.get("continuation-token", ""), key=str.encode)
    keys_max = min(int(query.get("max-keys", PAGE_KEYS_MAX)), PAGE_KEYS_MAX)
    keys = sorted((key for key in bucket.objects if key.startswith(prefix)), key=str.encode)
    shown: dict[str, None] = {}
    for key in (key for key in keys if key.encode() > after.encode()):
        name = _folded(key, prefix, delimiter)
        if name == after:
            continue
        if len(shown) == keys_max and name not in shown:
            last = list(shown)[-1]
            return _page(bucket, shown, f"<NextContinuationToken>{escape(last)}</NextContinuationToken>")
        shown[name] = None
    return _page(bucket, shown, "")


def _folded(key: str, prefix: str, delimiter: str) -> str:
    """The key, or what stands for all keys of its directory."""
    head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
    return prefix + head + found if found else key


def _page(bucket: Bucket, names: Mapping[str, None], token: str) -> Answer:
    keys = [name for name in names if name in bucket.objects]
    folders = [
        f"<CommonPrefixes><Prefix>{escape(n)}</Prefix></CommonPrefixes>" for n in names if n not in bucket.objects
    ]
    contents = [_content(key, bucket.objects[key]) for key in keys]
    truncated = f"<IsTruncated>{'true' if token else 'false'}</IsTruncated>"
    return _xml("ListBucketResult", f"<KeyCount>{len(names)}</KeyCount>", truncated, token, *contents, *folders)


def _content(key: str, stored: Stored) -> str:
    modified = stored.modified.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return (
        f"<Contents><Key>{escape(key)}</Key><Generation>{stored.generation}</Generation>"
        f"<LastModified>{modified}</LastModified><ETag>{escape(stored.etag)}</ETag>"
        f"<Size>{len(stored.data)}</Size></Contents>"
    )


def _metadata(request: Request) -> dict[str, str]:
    kept = {name: value for name, value in request.headers.items() if name.startswith("x-goog-meta-")}
    return {"content-type": request.headers.get("content-type", "application/octet-stream"), **kept}


def _outcome(stored: Stored) -> dict[str, str]:
    return {"etag": stored.etag, "x-goog-generation": str(stored.generation)}


def _is_number(element: ET.Element) -> bool:
    return element.tag.rpartition("}")[2] == "PartNumber"


def _xml(name: str, *parts: str, headers: Mapping[str, str] | None = None) -> Answer:
    body = f"<?xml version='1.0' encoding='UTF-8'?><{name}>{''.join(parts)}</{name}>"
    return Answer(200, {"content-type": "application/xml", **(headers or {})}, body.encode())
