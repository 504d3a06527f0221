"""A server that answers each request as a test says, and remembers what it was asked: for answers that no test server
gives, such as refusals for lack of a right."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

_STORED = {"ETag": '"0123"', "Last-Modified": "Fri, 21 Nov 2025 08:00:00 GMT"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came."""

    method: str
    target: str
    """Path and query, decoded."""
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Say:
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: _STORED)
    wait_s: float = 0.0


def refusal(status: int, code: str, sentence: str = "said the store", more: str = "") -> Say:
    """An error in the form that S3 and the XML API of GCS share."""
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{sentence}</Message>{more}</Error>'
    )
    return Say(status, text.encode(), {"Content-Type": "application/xml"})


@dataclass
class ScriptedServer:
    endpoint: str = ""
    asked: list[Asked] = field(default_factory=list)
    answer: Callable[[Asked], Say] = field(default=lambda asked: Say(404))
    """What a request is answered; set by the test, at any time."""

    def say(self, *answers: Say) -> None:
        """The next requests are answered in this order; the last answer stays."""
        pending = list(answers)
        self.asked.clear()
        self.answer = lambda _: pending.pop(0) if len(pending) > 1 else pending[0]

    @property
    def verbs(self) -> list[str]:
        return [asked.method for asked in self.asked]


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Such a server on a free port of this machine, on threads of its own."""
    script, over = ScriptedServer(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(self.command, unquote(self.path), {k.lower(): v for k, v in self.headers.items()}, body)
            script.asked.append(asked)
            say = script.answer(asked)
            over.wait(say.wait_s)
            self.send_response(say.status)
            for name, value in say.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(say.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(say.body)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Nothing: a client that hangs up in time is what some tests are about."""

    with Server(("127.0.0.1", 0), Handler) as server:
        script.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield script
        finally:
            over.set()
            server.shutdown()
            thread.join(10)
