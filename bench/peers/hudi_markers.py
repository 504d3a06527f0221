"""Hudi's timeline server asked for markers, as its own client asks: a POST a marker, its fields in the query.

A connection is kept, which Hudi's client does not promise to, and answers are taken apart as far as it takes to know
them. Everything is bytes here: the owner of the socket reads and writes it.
"""

import json
import re
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

from tallymark.backends.errors import TallymarkError

_FOLDER = "/v1/hoodie/marker"

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")

DELETE_TIMEOUT_S = 300.0
"""Its clients' own."""


class Refused(TallymarkError):
    """The server has answered that there is no marker: it says ``false`` where it had one, too."""


class HudiTalk:
    """One connection's questions, one at a time."""

    def __init__(self, host: str, folder: str) -> None:
        """``folder``: of the markers, an absolute path of the machine."""
        self._head = f"POST {_FOLDER}/create?markerdirpath={quote(folder, safe='')}&markername=".encode()
        self._tail = f" HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n".encode()
        self._heard = b""

    def question(self, path: str) -> bytes:
        return self._head + quote(f"{path}.marker.CREATE", safe="").encode() + self._tail

    def hear(self, data: bytes) -> bool:
        self._heard += data
        head, end, body = self._heard.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or (length and len(body) < int(length[1])):
            return False
        if length is None or not head.startswith(b"HTTP/1.1 200") or body != b"true":
            raise Refused(f"Hudi's timeline server answers {self._heard[:500]!r}")
        self._heard = b""
        return True


def delete_markers(port: int, folder: Path) -> bool:
    """Whether there was such a folder of markers; on return there is none."""
    target = f"http://127.0.0.1:{port}{_FOLDER}/dir/delete?markerdirpath={quote(str(folder), safe='')}"
    with urlopen(Request(target, method="POST"), timeout=DELETE_TIMEOUT_S) as answer:
        return bool(json.load(answer))


def list_markers(port: int, folder: Path) -> list[str]:
    """Return the names of all markers that the server has for the folder."""
    target = f"http://127.0.0.1:{port}{_FOLDER}/all?markerdirpath={quote(str(folder), safe='')}"
    with urlopen(target, timeout=DELETE_TIMEOUT_S) as answer:
        found: list[str] = json.load(answer)
        return found
