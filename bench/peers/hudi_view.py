"""What Hudi's timeline server says of a table's files, asked as Hudi's own remote view asks."""

import hashlib
import http.client
import json
from http import HTTPMethod, HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

from tallymark.backends.errors import TallymarkError
from tallymark.bench.peers.timeline_server import TimelineServer

TIMEOUT_S = 300.0
"""Its clients' own."""

_FOLDER = "/v1/hoodie/view"


class Refused(TallymarkError):
    """The server answered anything but 200."""


class HudiView:
    """One connection. Every request says how far its client's timeline goes, by the last instant and a hash of all.

    Answers are given as they come, in JSON: what taking them apart costs in Python would not be Hudi's time.
    """

    def __init__(self, port: int, table: Path) -> None:
        self._table = str(table)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._timeline: dict[str, str] = {}
        self.refresh()

    @classmethod
    def of(cls, server: TimelineServer, table: Path) -> "HudiView":
        return cls(server.port, table)

    def refresh(self) -> None:
        """Go by the timeline that the server has now."""
        instants = json.loads(self._ask(HTTPMethod.GET, "timeline/instants/all"))["instants"]
        words = "".join(f"{instant['requestedTime']}_{instant['action']}_{instant['state']}" for instant in instants)
        self._timeline = {
            "lastinstantts": instants[-1]["requestedTime"],
            "timelinehash": hashlib.sha256(words.encode()).hexdigest(),
        }

    def load_all(self) -> None:
        """On return the server has listed every partition."""
        self._ask(HTTPMethod.POST, "loadallpartitions/")

    def sync(self) -> None:
        """Make the server read the timeline again, and use it."""
        self._ask(HTTPMethod.POST, "refresh/")
        self.refresh()

    def files(self, partition: str) -> bytes:
        """The latest base files of a partition."""
        return self._ask(HTTPMethod.GET, "datafiles/latest/partition", partition=partition)

    def file(self, partition: str, file_id: str) -> bytes:
        """The latest base file of a file group."""
        return self._ask(HTTPMethod.GET, "datafile/latest/partition", partition=partition, fileid=file_id)

    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: HTTPMethod, question: str, **more: str) -> bytes:
        query = urlencode({"basepath": self._table, **more, **self._timeline})
        try:
            answer = self._answer(method, f"{_FOLDER}/{question}?{query}")
        except http.client.RemoteDisconnected:  # after half a minute in which nothing was asked
            self._connection.close()
            answer = self._answer(method, f"{_FOLDER}/{question}?{query}")
        body = answer.read()
        if answer.status != HTTPStatus.OK:
            raise Refused(f"{question} of {self._table}: {answer.status} {body[:200]!r}")
        return body

    def _answer(self, method: HTTPMethod, target: str) -> http.client.HTTPResponse:
        self._connection.request(method, target)
        return self._connection.getresponse()


def names(answer: bytes) -> list[str]:
    """Of the files in an answer."""
    return [file["fullPath"].rpartition("/")[2] for file in json.loads(answer)]
