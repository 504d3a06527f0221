"""Jobs of Hudi's own writers, on the JVM, with their markers in a service: each operation on each kind of table."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tallymark.bench.peers.timeline_server import timeline_server
from tests.spark.hudi.jobs import (
    MARKS,
    Failed,
    Hudi,
    Model,
    Service,
    hudi_writers,
    of_table,
    served,
    settings_of_the_guide,
)
from tests.spark.hudi.storage import Disk
from tests.support.ports import free_port

pytestmark = MARKS


@pytest.fixture(scope="module")
def hudi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hudi]:
    with hudi_writers(tmp_path_factory.mktemp("hudi")) as writers:
        yield writers


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def bare(lake: Path) -> Iterator[Service]:
    """A service that answers 404 to requests for views."""
    with served(lake, secret=lake.parent / "secret") as service:
        yield service


@pytest.fixture(scope="module")
def proxied(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Counter[int]]]:
    """A service that passes requests for views on to Hudi's own server, and how many of these have which status."""
    with (
        timeline_server(tmp_path_factory.mktemp("views"), view="MEMORY", heap_mb=512) as views,
        recording(views.port) as (port, statuses),
        served(lake, "--hudi-views", f"127.0.0.1:{port}", secret=lake.parent / "secret") as service,
    ):
        yield service, statuses


@contextmanager
def recording(behind: int) -> Iterator[tuple[int, Counter[int]]]:
    """A proxy that counts the statuses of the responses that it passes back. Yields its port, and these."""
    statuses = Counter[int]()

    class Recorder(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            connection = HTTPConnection("127.0.0.1", behind)
            connection.request(self.command, self.path)
            response = connection.getresponse()
            body = response.read()
            connection.close()
            statuses[response.status] += 1
            self.send_response(response.status)
            self.send_header("Content-Type", response.getheader("Content-Type", "text/plain"))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 the library's name

        def log_message(self, *_args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, statuses
        server.shutdown()
        thread.join()


def write_with_each_operation(table: Model) -> None:
    for operation, *ids in (
        ("insert", 0, 400),
        ("upsert", 200, 600),
        ("bulk_insert", 600, 800),
        ("delete", 0, 100),
        ("insert_overwrite", 800, 803),
        ("upsert", 100, 300),
    ):
        table.write(operation, *ids)
        table.check_rows()


@pytest.mark.parametrize("metadata", ["false", "true"])
@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_are_right_and_no_marker_is_left_where_no_views_are_served(hudi, lake, bare, version, metadata):
    path = lake / f"bare-{version}-{metadata}"
    options = {**settings_of_the_guide(bare.port), **of_table(version, metadata)}
    table = Model(hudi, str(path), options)
    write_with_each_operation(table)
    Disk(path).check_is_clean(table.committed())


@pytest.mark.parametrize("metadata", ["false", "true"])
@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_are_right_and_no_marker_is_left_where_hudis_server_answers_for_views(
    hudi, lake, proxied, version, metadata
):
    service, statuses = proxied
    statuses.clear()
    path = lake / f"proxied-{version}-{metadata}"
    options = {**settings_of_the_guide(service.port), **of_table(version, metadata)}
    table = Model(hudi, str(path), options)
    write_with_each_operation(table)
    Disk(path).check_is_clean(table.committed())
    # With a metadata table Hudi 1.2.0's own server, standalone, fails each request: the writers fall back to storage.
    assert {*statuses} == ({200} if metadata == "false" else {500})


def test_without_retries_a_service_that_is_gone_fails_the_job(hudi, lake):
    """A negative control: what keeps a job alive is in the settings of the guide."""
    settings = settings_of_the_guide(free_port()) | {"hoodie.filesystem.view.remote.retry.enable": "false"}
    table = Model(hudi, str(lake / "gone"), {**settings, **of_table("9", "false")})
    with pytest.raises(Failed, match="Connection refused"):
        table.write("insert", 0, 100)
