"""Credentials that Spark, its tasks and storage work with stand in nothing that any of them writes or says."""

import base64
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.hadoop_aws import hadoop_aws_jars
from tests.support.jars import java
from tests.support.place import place_on
from tests.support.process import BOUND_S, ROOT

pytestmark = pytest.mark.spark

SECRETS = {
    "AWS_SECRET_ACCESS_KEY": f"canary-secret-{secrets.token_hex(12)}",
    "AWS_SESSION_TOKEN": f"canary-token-{secrets.token_hex(12)}",
}


def test_no_secret_of_a_whole_job_is_in_logs_plans_events_pickles_errors_spools_or_the_store(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    java()
    jars = hadoop_aws_jars()
    place = place_on("s3", request)
    said = tmp_path / "said"
    for folder in ("events", "tmp"):
        (said / folder).mkdir(parents=True)
    arguments = (place.url, "s3://bucket-that-is-not", str(said), json.dumps(dict(place.spark_conf)))
    with (said / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "tests.system.spark.canary_program", *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                **SECRETS,
                "TMPDIR": str(said / "tmp"),
                "PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell",
            },
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=BOUND_S,
            check=False,
        )
    assert done.returncode == 0, (said / "out").read_text(errors="replace")[-4000:]
    everything = {**_files(said), **{f"store: {path}": data for path, data in place.objects().items()}}
    _assert_it_said_all(everything)
    assert _shown_in(everything, *(secret.encode() for secret in SECRETS.values())) == []
    keys = list(map(bytes.fromhex, (tmp_path / "job_keys").read_text().split()))
    assert keys
    assert _shown_in(everything, *keys) == ["ticket.pickle"], "that is what a ticket is for"


def test_a_secret_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"DEBUG key=" + SECRETS["AWS_SECRET_ACCESS_KEY"].encode() + b"\n")
    assert _shown_in(_files(tmp_path), *(secret.encode() for secret in SECRETS.values())) == ["log"]
    (tmp_path / "log").write_bytes(b"c0:" + base64.b64encode(b"of a pickle \x00\xff\n'\x80key"))
    assert _shown_in(_files(tmp_path), b"\x00\xff\n'\x80key") == ["log"]


def _assert_it_said_all(everything: Mapping[str, bytes]) -> None:
    out = everything["out"]
    for part in (b"options StorageOptions(", b"ticket WriteTicket(", b"result WriteResult(", b"DEBUG:py4j", b" DEBUG "):
        assert part in out, part
    assert out.count(b"error ") >= 3, "three writes were refused or failed"
    assert b"RuntimeError: boom" in out or b"/proc/never" in out
    assert b"== Analyzed Logical Plan ==" in out
    for kind in ("task.pickle", "ticket.pickle", "task-", "spooled-", "events/", "store: .hoodie/"):
        assert any(name.startswith(kind) and data for name, data in everything.items()), f"nothing of {kind}"


def _files(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def _shown_in(everything: Mapping[str, bytes], *secrets: bytes) -> list[str]:
    forms = [form for secret in secrets for form in _forms(secret)]
    return [name for name, data in everything.items() if any(form in data for form in forms)]


def _forms(secret: bytes) -> Iterator[bytes]:
    """A secret as it is, as Python and hexadecimal digits show it, and in base64 at each of its three places."""
    yield from (secret, repr(secret)[2:-1].encode(), secret.hex().encode())
    for place in range(3):
        yield base64.b64encode(b" " * place + secret)[4:-4]
