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
    parts: dict[str, int] = field(default_factory=dict)
    """Bytes by number; they are counted and forgotten."""

    @property
    def size(self) -> int:
        return sum(self.parts.values())


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

    def add(self, name: str, number: str, size: int) -> bool:
        """Take a part; False if there is no such upload."""
        if (found := self.open.get(name)) is None:
            return False
        found.parts[number] = size
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
