"""HTTP/1.1 as far as the bucket needs it: content lengths, one request after the other."""

import asyncio
import re
from urllib.parse import parse_qs, unquote, urlsplit

from tallymark.bench.loopback.objects import BUCKET, Objects, Request

_REASONS = {200: "OK", 204: "No Content", 404: "Not Found", 412: "Precondition Failed"}
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Connection(asyncio.Protocol):
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._pending = bytearray()
        self._head_bytes = 0
        self._request_bytes = 0
        """Of the request that is being read: 0 until its head is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while self._is_whole():
            head = bytes(self._pending[: self._head_bytes])
            body = bytes(self._pending[self._head_bytes + 4 : self._request_bytes])
            del self._pending[: self._request_bytes]
            self._request_bytes = 0
            self._answer(parsed(head, body))

    def _is_whole(self) -> bool:
        if not self._request_bytes:
            end = self._pending.find(b"\r\n\r\n")
            if end < 0:
                return False
            length = _LENGTH.search(self._pending, 0, end)
            self._head_bytes = end
            self._request_bytes = end + 4 + (int(length[1]) if length else 0)
        return len(self._pending) >= self._request_bytes

    def _answer(self, request: Request) -> None:
        status, headers, body = self._objects.reply(request)
        lines = [f"HTTP/1.1 {status} {_REASONS[status]}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "", ""]).encode()
        self._transport.write(head if request.method == "HEAD" else head + body)


def parsed(head: bytes, body: bytes) -> Request:
    """A request to ``/bucket/key?query``."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    split = urlsplit(target)
    key = unquote(split.path).removeprefix(f"/{BUCKET}").removeprefix("/")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Request(method, key, parse_qs(split.query, keep_blank_values=True), headers, body)
