"""``tallymark serve`` as a process: it says where it listens, and ends when it is told to."""

import http.client
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest
from click.testing import CliRunner

from tallymark.backends.local import LocalBackend
from tallymark.cli import main
from tests.engine.serve.hudi_table import INSTANT, put_state, put_table
from tests.engine.serve.test_hudi_markers import FOLDER, marker


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-c", "from tallymark.cli import main; main()", "serve", "--hudi-port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("Markers for Hudi at 127.0.0.1:"), process.stderr and process.stderr.read()
            yield process, int(line.partition("127.0.0.1:")[2].partition(",")[0])
        finally:
            process.kill()


def ask(port: int, root: Path, number: int) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        folder, name = quote(f"{root}/{FOLDER}"), quote(marker(number))
        connection.request("POST", f"/v1/hoodie/marker/create?markerdirpath={folder}&markername={name}")
        return connection.getresponse().read()
    finally:
        connection.close()


async def prepare(root: Path) -> None:
    await put_table(LocalBackend(root), 6)
    await put_state(LocalBackend(root), 6, "inflight")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(tmp_path, number):
    anyio.run(prepare, tmp_path)
    with serving("--root", str(tmp_path)) as (process, port):
        assert ask(port, tmp_path, 1) == b"true"
        process.send_signal(number)
        said, errors = process.communicate(timeout=60)
        assert (process.returncode, said, errors) == (0, "Ended.\n", "")


def test_what_was_acked_by_servers_that_were_killed_is_there(tmp_path):
    anyio.run(prepare, tmp_path)
    for number in range(3):
        with serving("--root", str(tmp_path)) as (process, port):
            assert ask(port, tmp_path, number) == b"true"
            process.kill()
    text = b"".join(path.read_bytes() for path in (tmp_path / FOLDER).glob("MARKERS[0-9]*")).decode()
    assert sorted(text.splitlines()) == [marker(number) for number in range(3)]
    assert INSTANT in text


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "Missing option '--root'"),
        (["--root", "lake"], 1, "'lake' is not an absolute path, or a URL"),
        (["--root", "/data", "--hudi-host", "0.0.0.0"], 1, "unless networks says who is served"),
        (["--root", "/data", "--hudi-network", "10.1"], 1, "networks holds networks, such as '10.1.0.0/16'"),
        (["--root", "/data", "--hudi-views", "here"], 1, "views is host:port"),
        (["--root", "/data", "--hudi-host", "192.0.2.1", "--hudi-network", "10.0.0.0/8"], 1, "cannot listen on"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(arguments, code, said):
    result = CliRunner().invoke(main, ["serve", *arguments])
    assert result.exit_code == code
    assert said in result.stderr
    assert code == 2 or len(result.stderr.splitlines()) == 1
