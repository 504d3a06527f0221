"""Multipart uploads: begun, added to, completed or aborted."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


@dataclass(slots=True)
class Upload:
    key: str
    headers: dict[str, str]
    parts: dict[int, tuple[int, bytes | None]] = field(default_factory=dict)
    """Size and bytes by number; a large part is counted and forgotten."""

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.parts.values())

    @property
    def body(self) -> bytes | None:
        """The parts in their order; None if one was forgotten."""
        bodies = [body for _, (_, body) in sorted(self.parts.items()) if body is not None]
        return b"".join(bodies) if len(bodies) == len(self.parts) else None


@dataclass(slots=True)
class Uploads:
    """Those that are neither completed nor aborted."""

    open: dict[str, Upload] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def begun(self, key: str, headers: dict[str, str]) -> bytes:
        """The answer that names a new one."""
        name = f"upload-{next(self.numbers)}"
        self.open[name] = Upload(key, headers)
        said = f"<Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
        return f"<InitiateMultipartUploadResult {NAMESPACE}>{said}</InitiateMultipartUploadResult>".encode()

    def add(self, name: str, number: int, size: int, body: bytes | None) -> bool:
        """Take a part; False if there is no such upload."""
        if (found := self.open.get(name)) is None:
            return False
        found.parts[number] = size, body
        return True

    def ended(self, name: str) -> Upload | None:
        """Forget it: the last step of it."""
        return self.open.pop(name, None)

    def listed(self) -> bytes:
        uploads = "".join(
            f"<Upload><Key>{escape(found.key)}</Key><UploadId>{name}</UploadId></Upload>"
            for name, found in self.open.items()
        )
        said = f"<IsTruncated>false</IsTruncated>{uploads}"
        return f"<ListMultipartUploadsResult {NAMESPACE}>{said}</ListMultipartUploadsResult>".encode()


def error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
