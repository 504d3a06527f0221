"""HTTP/1.1 as far as the bucket needs it: content lengths, one request after the other."""

import asyncio
import re
from urllib.parse import parse_qs, unquote, urlsplit

from tallymark.bench.loopback.objects import BUCKET, KEPT_BYTES_MAX, Objects, Request

READ_BYTES = 1 << 20

_REASONS = {200: "OK", 204: "No Content", 404: "Not Found", 412: "Precondition Failed"}
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Connection(asyncio.BufferedProtocol):
    """One client's. Large bodies are counted and forgotten as they come."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
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
        return self._head is not None and self._body_bytes > KEPT_BYTES_MAX

    def _is_whole(self) -> bool:
        if self._head is None:
            end = self._pending.find(b"\r\n\r\n")
            if end < 0:
                return False
            self._head = bytes(self._pending[:end])
            length = _LENGTH.search(self._head)
            self._body_bytes = int(length[1]) if length else 0
            del self._pending[: end + 4]
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
        lines = [f"HTTP/1.1 {status} {_REASONS[status]}", f"Content-Length: {len(reply)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "", ""]).encode()
        self._transport.write(head if request.method == "HEAD" else head + reply)


def parsed(head: bytes, body: bytes | None, size: int) -> Request:
    """A request to ``/bucket/key?query``. ``body`` is None where it was forgotten."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    split = urlsplit(target)
    key = unquote(split.path).removeprefix(f"/{BUCKET}").removeprefix("/")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Request(method, key, parse_qs(split.query, keep_blank_values=True), headers, body, size)
