"""The files of ``deploy/`` fit the command, its settings and each other, as far as this machine can try them."""

import configparser
import json
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import trustme
import yaml
from click.testing import CliRunner
from docker.utils import exclude_paths

import tallymark
from tallymark.cli import main
from tallymark.engine.rpc.server import DESCRIPTOR_SHARE
from tallymark.engine.serve.job_routes import ROLES
from tallymark.engine.serve.secret_file import default_path
from tallymark.engine.serve.settings import HudiServiceSettings, JobServiceSettings, PageSettings
from tests.packaging.distribution import ROOT, build_wheel, contents

DEPLOY = ROOT / "deploy"
FILES = "/etc/tallymark"
"""Where all of them expect the files of the service."""

UNIT = "tallymark-serve.service"
PORTS = [JobServiceSettings().port, JobServiceSettings().task_port, PageSettings().port]
CONFIG = tomllib.loads((DEPLOY / "serve.toml").read_text())
JOBS = CONFIG["jobs"]


def instructions(name: str) -> list[str]:
    """The arguments of each instruction with this name, in order."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{name} ")]


def image_command() -> list[str]:
    (entry,), (arguments,) = instructions("ENTRYPOINT"), instructions("CMD")
    return [*json.loads(entry), *json.loads(arguments)]


def manifest(kind: str) -> Any:
    (found,) = (each for each in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()) if each["kind"] == kind)
    return found["spec"]


def pod() -> Any:
    return manifest("Deployment")["template"]["spec"]


def container() -> Any:
    (only,) = pod()["containers"]
    return only


def pod_command() -> list[str]:
    return [*json.loads(instructions("ENTRYPOINT")[0]), *container()["args"]]


def unit() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / UNIT)
    return parser["Service"]


def unit_command() -> list[str]:
    program, *arguments = shlex.split(unit()["ExecStart"].replace("%d", FILES))
    (copied,) = (words.split()[1] for words in instructions("COPY") if words.startswith("--from=build"))
    assert Path(program).parent == Path(copied) / "bin", "image and unit have the program in one place"
    return [Path(program).name, *arguments]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with everything that the configuration names, and itself, moved there."""
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "serve.toml").write_text((DEPLOY / "serve.toml").read_text().replace(FILES, str(folder)))
    issued = trustme.CA().issue_cert("tallymark-serve.etl.svc")
    issued.private_key_pem.write_to_path(str(folder / "tls.key"))
    issued.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
    (folder / "secret").write_bytes(bytes(32))
    (folder / "secret").chmod(0o600)
    add = ["serve", "token", "add", "--tokens", str(folder / "tokens.json"), "--table", "s3://lake/sales/*"]
    assert CliRunner().invoke(main, add).exit_code == 0
    return folder


@pytest.mark.parametrize("command", [image_command, pod_command, unit_command])
def test_the_command_is_understood_and_the_configuration_is_served(files, command):
    program, *arguments = (word.replace(FILES, str(files)) for word in command())
    assert program == "tallymark"
    checked = CliRunner().invoke(main, [*arguments, "--check-config"])
    assert (checked.exit_code, checked.output) == (0, f"Nothing is wrong with {files}/serve.toml: 1 roots.\n")


def test_the_wheel_has_what_the_command_of_the_image_needs(installed, files, tmp_path):
    program, *arguments = (word.replace(FILES, str(files)) for word in image_command())
    assert "Nothing is wrong" in installed.run(
        installed.folder / "bin" / program, *arguments, "--check-config", cwd=tmp_path
    )


def test_the_context_of_the_image_is_enough_for_the_same_wheel(distribution, tmp_path):
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    context = tmp_path / "context"
    for name in sorted(exclude_paths(str(ROOT), patterns)):
        source, target = ROOT / name, context / name
        if source.is_dir() and not source.is_symlink():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    assert not {"tests", "docs", "deploy", ".git"} & {path.name for path in context.iterdir()}
    assert contents(build_wheel(context, tmp_path / "dist")) == contents(distribution.wheel)


def test_the_image_has_a_folder_for_a_secret_that_is_not_given(monkeypatch):
    (environment,) = instructions("ENV")
    monkeypatch.setenv("XDG_STATE_HOME", dict(pair.split("=", 1) for pair in environment.split())["XDG_STATE_HOME"])
    (made,) = (words for words in instructions("RUN") if words.startswith("install -d"))
    assert made.split()[-1] == str(default_path().parent)
    assert instructions("USER") == [f"{made.split()[3]}:{made.split()[5]}"]


def test_the_manifest_follows_the_schemas_of_kubernetes():
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    assert [each["kind"] for each in documents] == ["Deployment", "Service", "PodDisruptionBudget"]
    for each in documents:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)
    documents[0]["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="livenesProbe"):
        kubernetes_validate.validate(documents[0], kubernetes_validate.latest_version(), strict=True)


def test_image_pod_and_service_have_the_ports_of_the_settings():
    assert [int(port) for port in instructions("EXPOSE")[0].split()] == PORTS
    own = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert list(own.values()) == PORTS
    assert [(port["port"], own[port["targetPort"]]) for port in manifest("Service")["ports"]] == [(p, p) for p in PORTS]


def test_probes_are_operations_that_need_no_role_on_the_port_for_drivers():
    for name, path in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        request = container()[name]["httpGet"]
        assert request == {"scheme": "HTTPS", "path": path, "port": container()["ports"][0]["name"]}
        assert ROLES["GET", path] is None
    assert JOBS["tls_cert"], "what HTTPS needs"


def test_the_end_is_awaited_and_a_balancer_notices_it_before():
    ready = container()["readinessProbe"]
    assert ready["periodSeconds"] * ready["failureThreshold"] + ready["timeoutSeconds"] <= JOBS["drain_s"]
    for limit_s in (pod()["terminationGracePeriodSeconds"], int(unit()["TimeoutStopSec"])):
        assert limit_s > JOBS["drain_s"] + 10 > JobServiceSettings().drain_s
    assert instructions("STOPSIGNAL") == [unit()["KillSignal"]] == ["SIGTERM"]


def test_the_pod_runs_the_user_and_the_release_of_the_image():
    security = pod()["securityContext"]
    assert [f"{security['runAsUser']}:{security['runAsGroup']}"] == instructions("USER")
    assert security["fsGroup"] == security["runAsGroup"], "reads the secret by its group"
    assert container()["image"] == f"tallymark-serve:{tallymark.__version__}"


def test_pod_and_unit_have_the_files_where_the_configuration_looks():
    named = {JOBS[key] for key in ("tls_cert", "tls_key", "tokens", "secret")}
    assert named == {f"{FILES}/{name}" for name in ("tls.crt", "tls.key", "tokens.json", "secret")}
    assert container()["volumeMounts"][0] == {"name": "files", "mountPath": FILES, "readOnly": True}
    assert unit()["LoadCredential"] == f"secret:{JOBS['secret']}"


def test_the_limits_of_memory_leave_room_for_both_processes():
    assert container()["resources"]["limits"]["memory"] == "1536Mi"
    assert unit()["MemoryMax"] == "1536M"
    assert CONFIG["service"]["memory_mb"] + CONFIG["page"]["memory_mb"] <= 1536 - 2 * 300


def test_the_unit_lets_as_many_descriptors_be_open_as_connections_are_allowed():
    jobs, hudi = JobServiceSettings(), HudiServiceSettings()
    needed = jobs.connection_count + jobs.driver_count + hudi.connection_count
    assert needed <= DESCRIPTOR_SHARE * int(unit()["LimitNOFILE"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    program = shlex.split(unit()["ExecStart"])[0]
    file = tmp_path / UNIT
    file.write_text((DEPLOY / UNIT).read_text().replace(f"={program}", "=/bin/true"))
    assert verified(file) == (0, "")
    file.write_text(file.read_text().replace("\nRestart=", "\nRestrat="))
    assert "'Restrat'" in verified(file)[1]


def verified(file: Path) -> tuple[int, str]:
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return ended.returncode, ended.stdout + ended.stderr
