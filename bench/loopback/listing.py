"""What the bucket says in XML: pages of a listing, and the answers to copies and uploads."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tallymark.bench.loopback.uploads import NAMESPACE

PAGE_COUNT = 1000
"""Entries of a page of a listing, as S3's."""

MODIFIED = "2026-01-01T00:00:00.000Z"


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    tag: str = ""
    size: int = 0
    is_folder: bool = False
    """Whether it stands for all keys that begin so."""

    @property
    def xml(self) -> str:
        if self.is_folder:
            return f"<CommonPrefixes><Prefix>{escape(self.name)}</Prefix></CommonPrefixes>"
        what = f"<Key>{escape(self.name)}</Key>{tag_and_time(self.tag)}<Size>{self.size}</Size>"
        return f"<Contents>{what}<StorageClass>STANDARD</StorageClass></Contents>"


def page(bucket: str, prefix: str, found: Sequence[Listed], count_max: int) -> bytes:
    """The first so many of what was found; whether there are more is said."""
    shown = found[:count_max]
    more = f"<NextContinuationToken>{escape(shown[-1].name)}</NextContinuationToken>" if len(found) > len(shown) else ""
    head = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(shown)}</KeyCount>"
    head += f"<MaxKeys>{count_max}</MaxKeys><IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}"
    entries = "".join(entry.xml for entry in shown)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult {NAMESPACE}>{head}{entries}</ListBucketResult>'
    ).encode()


def completed(tag: str) -> bytes:
    name = "CompleteMultipartUploadResult"
    return f"<{name} {NAMESPACE}><ETag>{escape(tag)}</ETag></{name}>".encode()


def copied(tag: str) -> bytes:
    return f"<CopyObjectResult {NAMESPACE}>{tag_and_time(tag)}</CopyObjectResult>".encode()


def tag_and_time(tag: str) -> str:
    return f"<LastModified>{MODIFIED}</LastModified><ETag>{escape(tag)}</ETag>"
