"""HTTP/1.1 as far as the bucket needs it: content lengths, one request after the other."""

import asyncio
import re
import time
from urllib.parse import parse_qs, unquote, urlsplit

from tallymark.bench.loopback.objects import BUCKET, KEPT_BYTES_MAX, Objects, Request, changed
from tallymark.bench.loopback.rate import Rate

READ_BYTES = 1 << 20

_REASONS = {
    200: "OK",
    204: "No Content",
    206: "Partial Content",
    404: "Not Found",
    412: "Precondition Failed",
    416: "Range Not Satisfiable",
}
_EXPECTS = re.compile(rb"(?i)\r\nexpect: *100-continue")
_DATA_FILE = re.compile(rb"PUT /(?!\S*/_delta_log/)\S*\.parquet[? ]")
"""A checkpoint of a Delta log has such a name, too, and has to be read again."""

DATA_KEPT_BYTES_MAX = 1 << 16
"""Of a data file, which is not read here: beside its rows a file of Hudi holds a filter of 400 kB, and 16,500 of these
would be 7 GB."""

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Connection(asyncio.BufferedProtocol):
    """One client's. Large bodies are counted and forgotten as they come."""

    def __init__(
        self,
        objects: Objects,
        latency_s: float = 0.0,
        *,
        kept_bytes_max: int = KEPT_BYTES_MAX,
        data_kept_bytes_max: int = DATA_KEPT_BYTES_MAX,
        rate: Rate | None = None,
    ) -> None:
        """``latency_s`` goes by before each answer; the connection's next request waits for it, others do not. What
        waits for ``rate``, which all connections share, waits before that.
        """
        self._rate = rate or Rate(0)
        self._kept_bytes_max = kept_bytes_max
        self._data_kept_bytes_max = data_kept_bytes_max
        self._objects = objects
        self._latency_s = latency_s
        self._buffer = bytearray(READ_BYTES)
        self._pending = bytearray()
        self._head: bytes | None = None
        """Of the request that is being read, once it is there."""
        self._body_bytes = 0
        self._forgotten_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, _sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_forgetting:
            self._forgotten_bytes += nbytes
        else:
            self._pending += memoryview(self._buffer)[:nbytes]
        while self._is_whole():
            self._answer()

    @property
    def _is_forgetting(self) -> bool:
        """Whether what comes next is a part of a large body. Its client waits for the answer before it sends more."""
        if self._head is None:
            return False
        limit = self._data_kept_bytes_max if _DATA_FILE.match(self._head) else self._kept_bytes_max
        return self._body_bytes > limit

    def _is_whole(self) -> bool:
        if self._head is None:
            end = self._pending.find(b"\r\n\r\n")
            if end < 0:
                return False
            self._head = bytes(self._pending[:end])
            length = _LENGTH.search(self._head)
            self._body_bytes = int(length[1]) if length else 0
            del self._pending[: end + 4]
            if _EXPECTS.search(self._head):
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if self._is_forgetting:
                self._forgotten_bytes = len(self._pending)
                self._pending.clear()
        return self._forgotten_bytes + len(self._pending) >= self._body_bytes

    def _answer(self) -> None:
        assert self._head is not None
        body = None if self._is_forgetting else bytes(self._pending[: self._body_bytes])
        request = parsed(self._head, body, self._body_bytes)
        del self._pending[: self._body_bytes]
        self._head, self._forgotten_bytes = None, 0
        status, headers, reply = self._objects.reply(request)
        headers = {"Content-Length": str(len(reply)), **headers}
        lines = [f"HTTP/1.1 {status} {_REASONS[status]}", *(f"{name}: {value}" for name, value in headers.items())]
        answer = "\r\n".join([*lines, "", ""]).encode() + reply
        wait_s = self._latency_s + self._rate.wait_s(changed(request), time.monotonic())
        if wait_s:
            asyncio.get_running_loop().call_later(wait_s, self._transport.write, answer)
        else:
            self._transport.write(answer)


def parsed(head: bytes, body: bytes | None, size: int) -> Request:
    """A request to ``/bucket/key?query``. ``body`` is None where it was forgotten."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    split = urlsplit(target)
    key = unquote(split.path).removeprefix(f"/{BUCKET}").removeprefix("/")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if (decoded := headers.get("x-amz-decoded-content-length")) is not None:
        body, size = body if body is None else unchunked(body), int(decoded)
    return Request(method, key, parse_qs(split.query, keep_blank_values=True), headers, body, size)


def unchunked(body: bytes) -> bytes:
    """The bytes in a body of ``aws-chunked`` encoding: pieces, each after a line with its length in hexadecimal."""
    pieces, place = [], 0
    while place < len(body):
        end = body.index(b"\r\n", place)
        length = int(body[place:end].partition(b";")[0], 16)
        if not length:
            break  # what follows are checksums
        pieces.append(body[end + 2 : end + 2 + length])
        place = end + 2 + length + 2
    return b"".join(pieces)
