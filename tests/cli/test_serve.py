"""``tallymark serve`` as a process: it says where it listens, and ends when it is told to."""

import http.client
import json
import resource
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
from tallymark.engine.errors import NotAuthenticated
from tallymark.engine.rpc.shared_service import shared_address
from tallymark.engine.serve.descriptors import DESCRIPTORS_MAX
from tallymark.engine.serve.tokens import add_token
from tallymark.engine.settings import SharedServiceSettings
from tests.engine.rpc.serving import until
from tests.engine.serve.hudi_table import INSTANT, put_state, put_table
from tests.engine.serve.test_hudi_markers import FOLDER, marker
from tests.engine.serve.test_secure_service import Authority

FREE_PORTS = ("--port", "0", "--task-port", "0", "--hudi-port", "0", "--no-page")


@pytest.fixture(autouse=True)
def state(kept_loggers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@contextmanager
def serving(*arguments: str, scheme: str = "http") -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Yield the process, and the ports for drivers and for Hudi's writers."""
    command = [sys.executable, "-c", "from tallymark.cli import main; main()", "serve", *FREE_PORTS, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(3)]
            assert lines[0].startswith(f"Jobs at {scheme}://127.0.0.1:"), process.stderr and process.stderr.read()
            assert lines[1].startswith("Markers for Hudi at 127.0.0.1:")
            drivers, hudi = (int(line.rpartition(":")[2]) for line in lines[:2])
            yield process, drivers, hudi
        finally:
            process.kill()


def ask(port: int, root: Path, number: int) -> bytes:
    folder, name = quote(f"{root}/{FOLDER}"), quote(marker(number))
    return request(port, "POST", f"/v1/hoodie/marker/create?markerdirpath={folder}&markername={name}")[1]


async def prepare(root: Path) -> None:
    await put_table(LocalBackend(root), 6)
    await put_state(LocalBackend(root), 6, "inflight")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(tmp_path, number):
    anyio.run(prepare, tmp_path)
    quiet = ("--log-level", "warning")
    with serving("--root", str(tmp_path), "--drain-s", "0.1", *quiet) as (process, _, port):
        assert ask(port, tmp_path, 1) == b"true"
        process.send_signal(number)
        said, errors = process.communicate(timeout=60)
        assert (process.returncode, said, errors) == (0, "Ended.\n", "")


def test_a_probe_fails_before_the_service_ends(tmp_path):
    with serving("--root", str(tmp_path), "--drain-s", "600") as (process, port, _):
        assert probe(port) == 200
        process.send_signal(signal.SIGTERM)
        anyio.run(until, lambda: probe(port) != 200)
        assert probe(port) == 503
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def test_a_job_of_one_service_goes_on_at_another_that_has_its_secret(tmp_path, state):
    lake = tmp_path / "lake"
    with serving("--root", str(lake)) as (_, first, _), serving("--root", str(lake)) as (_, second, _):
        keys = [key_of(port, f"{lake}/flights") for port in (first, second)]
    with serving("--root", str(lake)) as (_, third, _):
        keys.append(key_of(third, f"{lake}/flights"))
    with serving("--root", str(lake), "--secret", str(tmp_path / "another")) as (_, other, _):
        assert key_of(other, f"{lake}/flights") not in keys
    assert len({*keys}) == 1
    assert (state / "tallymark" / "serve.secret").stat().st_mode & 0o777 == 0o600


def probe(port: int) -> int:
    return request(port, "GET", "/readyz")[0]


def key_of(port: int, table: str) -> str:
    status, body = request(port, "POST", f"/v1/jobs?table={quote(table)}&instant={INSTANT}")
    assert status == 200, body
    return str(json.loads(body)["key"])


def request(port: int, method: str, target: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, target)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_what_was_acked_by_servers_that_were_killed_is_there(tmp_path):
    anyio.run(prepare, tmp_path)
    for number in range(3):
        with serving("--root", str(tmp_path)) as (process, _, port):
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
        (["--root", "/data", "--host", "0.0.0.0"], 1, "host is an address of this machine alone"),
        (["--root", "/data", "--secret", "/dev/null", *FREE_PORTS], 1, "others may read this secret"),
        (
            ["--root", "/data", "--audit-log", "/dev/null/x"],
            1,
            "setting audit_log='/dev/null/x': the file cannot be opened",
        ),
        (["--root", "/data", "--hudi-host", "192.0.2.1", "--hudi-network", "10.0.0.0/8"], 1, "cannot listen on"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(arguments, code, said):
    result = CliRunner().invoke(main, ["serve", *arguments])
    assert result.exit_code == code
    assert said in result.stderr
    assert code == 2 or len(result.stderr.splitlines()) == 1


def test_a_configuration_is_served_and_checked(tmp_path):
    file, tokens = tmp_path / "serve.toml", tmp_path / "tokens.json"
    file.write_text(f'[[roots]]\nurl = "{tmp_path}/lake"\n[jobs]\nsecret = "{tmp_path}/secret"\n')
    checked = CliRunner().invoke(main, ["serve", "--config", str(file), "--check-config"])
    assert (checked.exit_code, checked.stdout) == (0, f"Nothing is wrong with {file}: 1 roots.\n")
    assert not (tmp_path / "secret").exists()
    with serving("--config", str(file), "--root", f"{tmp_path}/other") as (_, port, _):
        for table in ("lake/flights", "other"):
            assert key_of(port, f"{tmp_path}/{table}")
    wrong = CliRunner().invoke(main, ["serve", "--config", str(file), "--tokens", str(tokens), "--check-config"])
    assert (wrong.exit_code, "tokens.json cannot be read" in wrong.stderr) == (1, True)
    strange = CliRunner().invoke(main, ["serve", "--root", "foo://x/y", "--check-config"])
    assert (strange.exit_code, "foo" in strange.stderr) == (1, True)
    file.write_text('[[roots]]\nurl = "lake"\n[jobs]\nprot = 1\n')
    wrong = CliRunner().invoke(main, ["serve", "--config", str(file), "--check-config"])
    assert (wrong.exit_code, len(wrong.stderr.splitlines())) == (1, 2)


def test_log_lines_are_json_and_the_audit_has_its_file(tmp_path):
    audit = tmp_path / "audit.log"
    logs = ("--log-format", "json", "--log-level", "debug", "--audit-log", str(audit))
    with serving("--root", f"{tmp_path}/lake", *logs, "--drain-s", "0.1") as (process, port, _):
        assert key_of(port, f"{tmp_path}/lake/flights")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    lines = [json.loads(line) for line in errors.splitlines()]
    [answered] = [line for line in lines if line.get("event") == "request.answered"]
    assert (answered["path"], answered["status"], answered["logger"]) == (
        "/v1/jobs",
        200,
        "tallymark.engine.serve.http_service",
    )
    assert "flights" not in errors
    [audited] = [json.loads(line) for line in audit.read_text().splitlines()]
    assert (audited["event"], audited["table"], audited["request"]) == (
        "audit.answered",
        f"{tmp_path}/lake/flights",
        answered["request"],
    )


def test_it_opens_as_many_descriptors_as_it_may(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        with serving("--root", str(tmp_path)) as (process, _, _):
            limits = Path(f"/proc/{process.pid}/limits").read_text()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    [line] = [line for line in limits.splitlines() if line.startswith("Max open files")]
    assert int(line.split()[3]) == min(hard, DESCRIPTORS_MAX)


def test_tokens_are_made_listed_and_revoked(tmp_path):
    tokens = tmp_path / "tokens.json"

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["serve", "token", *arguments, "--tokens", str(tokens)])
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    made = [run("add", "--table", "s3://lake/*"), run("add", "--role", "read", "--table", "/data/*", "--days", "1")]
    lines = run("list").splitlines()
    assert [line.split()[:2] for line in lines] == [[made[0][4:12], "write"], [made[1][4:12], "read"]]
    assert not any(token[13:] in line for token in made for line in lines)
    assert run("revoke", made[0][4:12]) == f"{made[0][4:12]} is revoked."
    assert len(run("list").splitlines()) == 1
    wrong = CliRunner().invoke(main, ["serve", "token", "add", "--tokens", str(tokens), "--table", "lake/*"])
    assert (wrong.exit_code, "is not an absolute path" in wrong.stderr) == (1, True)


def test_a_job_of_another_machine_is_served_by_its_token(tmp_path):
    authority = Authority(tmp_path)
    given = [part for name, value in authority.settings.items() for part in (f"--{name.replace('_', '-')}", value)]
    token = add_token(authority.tokens, "write", [f"{tmp_path}/lake/*"])
    with serving("--root", f"{tmp_path}/lake", *given, scheme="https") as (_, port, _):
        service = SharedServiceSettings(url=f"https://localhost:{port}", token=token, ca_file=str(authority.ca_file))
        address = anyio.run(shared_address, service, f"{tmp_path}/lake/t", INSTANT)
        assert address.host == "localhost"
        with pytest.raises(NotAuthenticated):
            anyio.run(shared_address, service, f"{tmp_path}/lake", INSTANT)
