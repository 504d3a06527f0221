"""A server that stands for Google Cloud Storage in tests, and a look into it by plain HTTP, around any library.

It is our own model of the XML API (``gcs_model``), not Google's software: what it shows, and what not, is said there.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import count
from urllib.parse import quote, urlencode
from xml.etree import ElementTree as ET

from tallymark.backends import StorageOptions
from tests.support.process import serving_program
from tests.support.services.gcs_model import ONE_WRITE_A_SECOND

TOKEN = "TALLYMARK_TESTS_GCS_TOKEN"
"""The variable of the environment that holds the bearer token which ``credentials`` gives."""


def credentials() -> dict[str, object]:
    """A provider as ``StorageOptions.credentials`` names it."""
    return {"token": os.environ.get(TOKEN, "tests"), "expires_at": datetime.now(UTC) + timedelta(hours=1)}


@dataclass
class GcsFacade:
    """A running server; ``endpoint`` may be that of a proxy in front of it."""

    endpoint: str
    _numbers: Iterator[int] = field(default_factory=count, repr=False)

    @property
    def options(self) -> StorageOptions:
        return self.behind(self.endpoint)

    def behind(self, endpoint: str) -> StorageOptions:
        """The options that lead to this server through a proxy."""
        return StorageOptions(endpoint=endpoint, credentials=f"{__name__}:{credentials.__name__}")

    def bucket(self, *, one_write_a_second: bool = False) -> str:
        """The name of a new, empty bucket; real ones have the rule of one write a second for each object."""
        name = f"bucket-{next(self._numbers)}"
        self._ask("PUT", f"/{name}", headers={ONE_WRITE_A_SECOND: "yes"} if one_write_a_second else {})
        return name

    def drop(self, bucket: str) -> None:
        """The bucket and its objects are gone."""
        for key in self.keys(bucket):
            self._ask("DELETE", _address(bucket, key))
        self._ask("DELETE", f"/{bucket}")

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Every key that begins so, sorted, by as many requests as that takes."""
        keys: list[str] = []
        query = {"list-type": "2", "prefix": prefix}
        while True:
            page = ET.fromstring(self._ask("GET", f"/{bucket}?{urlencode(query)}"))
            keys += [each.findtext("Key", "") for each in page.iter("Contents")]
            token = page.findtext("NextContinuationToken")
            if token is None:
                return keys
            query["continuation-token"] = token

    def objects(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        """Every object that begins so, key to bytes."""
        return {key: self.get(bucket, key) for key in self.keys(bucket, prefix)}

    def get(self, bucket: str, key: str) -> bytes:
        return self._ask("GET", _address(bucket, key))

    def uploads(self, bucket: str) -> list[str]:
        """Keys of multipart uploads that nobody has completed or aborted."""
        answer = ET.fromstring(self._ask("GET", f"/{bucket}?uploads"))
        return [key.text or "" for key in answer.iter("Key")]

    def _ask(self, method: str, target: str, headers: dict[str, str] | None = None) -> bytes:
        line = HTTPConnection(self.endpoint.removeprefix("http://"), timeout=60)
        try:
            line.request(method, target, headers={"Authorization": "Bearer tests", **(headers or {})})
            answer = line.getresponse()
            body = answer.read()
        finally:
            line.close()
        assert answer.status in (200, 204), f"{method} {target}: {answer.status} {body!r}"
        return body


def _address(bucket: str, key: str) -> str:
    return f"/{bucket}/{quote(key, safe='')}"


@contextmanager
def gcs_facade() -> Iterator[GcsFacade]:
    """A server on a free port of this machine, until the block ends or this process dies."""
    with serving_program("tests.support.services.gcs_program") as port:
        yield GcsFacade(f"http://127.0.0.1:{port}")
