"""The model of Google Cloud Storage as a program that speaks HTTP; says its port on standard output."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.process import serve_while_parent_lives
from tests.support.services.gcs_model import GcsModel
from tests.support.services.http_message import Request


class GcsServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), GcsHandler)
        self.model = GcsModel()
        self.lock = threading.Lock()


class GcsHandler(BaseHTTPRequestHandler):
    """Requests of one connection; a request happens when its body has come in."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: GcsServer

    def answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, self._body())
        with self.server.lock:
            answer = self.server.model.answer(request)
        self.wfile.write(answer.encode(request.method))
        self.wfile.flush()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def log_message(self, *_: object) -> None:
        """Nothing: a test says what went wrong by its own assertions."""


def main() -> None:
    server = GcsServer()
    serve_while_parent_lives(server.serve_forever, server.server_port)


if __name__ == "__main__":
    main()
