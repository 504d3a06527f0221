"""HTTP/1.1 messages on asyncio's streams, whole: a request or an answer is read to its end before anything is done.

Bodies come with a length, in chunks, or until the end of the connection; they go on with a length.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

HEAD_BYTES_MAX = 256 * 1024

_HOP = ("connection", "transfer-encoding", "expect", "keep-alive")
"""Headers that concern one connection and not the message."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    headers: Mapping[str, str]
    """Names in small letters; a name that came twice holds both values, after a comma."""
    body: bytes = field(repr=False)

    def encode(self) -> bytes:
        """As it goes on to the server, on a connection of its own."""
        headers = {**self.headers, "content-length": str(len(self.body)), "connection": "close"}
        return _head(f"{self.method} {self.target} HTTP/1.1", headers) + self.body


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def encode(self, method: str = "GET") -> bytes:
        """As it goes to whoever asked by that method: an answer to HEAD has no body, but may tell its length."""
        length = {} if self.status == 204 else {"content-length": str(len(self.body))}
        head = _head(f"HTTP/1.1 {self.status} -", {**length, **self.headers})
        return head if method == "HEAD" else head + self.body


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """The next one of a connection; None at its end. A client that waits for leave to send its body gets it."""
    try:
        first, headers = _parsed(await reader.readuntil(b"\r\n\r\n"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    method, target, _ = first.split(" ", 2)
    try:
        body = await _body(reader, headers, until_end=False)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return Request(method, target, _lasting(headers), body)


async def read_answer(reader: asyncio.StreamReader, *, method: str) -> Answer:
    """The answer to a request of that method."""
    status, headers = 100, {}
    while status == 100:
        first, headers = _parsed(await reader.readuntil(b"\r\n\r\n"))
        status = int(first.split(" ", 2)[1])
    if method == "HEAD" or status in (204, 304):
        return Answer(status, _lasting(headers), b"")
    body = await _body(reader, headers, until_end=True)
    return Answer(status, {**_lasting(headers), "content-length": str(len(body))}, body)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str], *, until_end: bool) -> bytes:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return await _chunks(reader)
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read() if until_end else b""


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    chunks = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        chunks.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers
    return b"".join(chunks)


def _parsed(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        key = name.strip().lower()
        headers[key] = f"{headers[key]},{value.strip()}" if key in headers else value.strip()
    return first, headers


def _lasting(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in _HOP}


def _head(first: str, headers: Mapping[str, str]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
