"""What Hudi's timeline server says of the markers of one instant: one question after the other, each asked once."""

import http.client
import json
from http import HTTPMethod, HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

from tallymark.bench.peers.hudi_view import TIMEOUT_S, Refused

MARKER_REQUESTS = "--enable-marker-requests"
"""What a timeline server is started with, or it knows none of these questions."""

_FOLDER = "/v1/hoodie/marker"


class HudiInstant:
    """One connection, which is made anew after a failure."""

    def __init__(self, port: int, table: Path, instant: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._table = table
        self.folder = table / ".hoodie" / ".temp" / instant
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)

    def create(self, path: str, *, early: bool = False) -> bool:
        """``path`` is a data file's, below the table. False: the server has that marker, or has seen a conflict.

        With ``early`` the request says where the table lies, as that of a client with early conflict detection does.

        Raises:
            Refused: the server answered anything but 200.
            OSError, HTTPException: it did not answer.
        """
        table = {"basepath": str(self._table)} if early else {}
        return bool(self._ask(HTTPMethod.POST, "create", markername=f"{path}.marker.CREATE", **table))

    def names(self) -> frozenset[str]:
        """All that the server has for markers. Raises as ``create`` does."""
        found = self._ask(HTTPMethod.GET, "all")
        assert isinstance(found, list)
        return frozenset(found)

    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: HTTPMethod, question: str, **more: str) -> object:
        query = urlencode({"markerdirpath": str(self.folder), **more})
        try:
            self._connection.request(method, f"{_FOLDER}/{question}?{query}")
            answer = self._connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        if answer.status != HTTPStatus.OK:
            raise Refused(f"{question} of {self.folder}: {answer.status} {body[:200]!r}")
        found: object = json.loads(body)
        return found
