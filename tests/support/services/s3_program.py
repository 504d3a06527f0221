"""The S3 server of the tests as a program: moto, with requests that happen one after the other.

Moto checks a precondition and then puts, without a lock between, so that two writers of one key can both be first.
Here the whole application stands behind one lock, taken once a request's body has come in, so that every request is
atomic and a slow upload holds up nobody. Says its port on standard output; ends when the process that started it does.
"""

import io
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from tests.support.process import serve_while_parent_lives

Environment = dict[str, Any]
Application = Callable[[Environment, Any], Iterable[bytes]]


class OneAtATime:
    """An application whose requests are atomic."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.RLock()

    def __call__(self, environment: Environment, start_response: Any) -> Iterable[bytes]:
        body = _body(environment)
        with self._lock:
            return list(self._application({**environment, "wsgi.input": io.BytesIO(body)}, start_response))


class QuietHandler(MotoRequestHandler):
    """Werkzeug closes each connection after one request."""

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002
        """Nothing: a test says what went wrong by its own assertions."""


def main() -> None:
    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=QuietHandler)
    server.daemon_threads = True  # type: ignore[attr-defined]
    serve_while_parent_lives(server.serve_forever, server.port)


def _body(environment: Environment) -> bytes:
    source = environment["wsgi.input"]
    if environment.get("wsgi.input_terminated"):
        return bytes(source.read())
    return bytes(source.read(int(environment.get("CONTENT_LENGTH") or 0)))


if __name__ == "__main__":
    main()
