"""The REST interface of a whole service, over TLS and with a token, is what its OpenAPI document states."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tallymark.engine.serve.tokens import add_token
from tests.cli.scene import die_writing, write
from tests.engine.serve.test_secure_service import Authority
from tests.system.serve.pages import serving_pages

CHECKS = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "304", "404", "409", "422", "429", "503"]
"""
"""422: whether there is such a position, partition or instant depends on the table, and not on the document."""


@pytest.mark.slow
def test_schemathesis_finds_no_answer_that_differs_from_the_document(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write(lake / "flights", 1, 2)
    write(lake / "flights", 2)
    die_writing(lake / "flights", 3)
    token = add_token(tmp_path / "tokens.json", "admin", [f"{lake}/*"])
    authority = Authority(tmp_path)
    (tmp_path / "checks.toml").write_text(CHECKS)
    tls = ("--tls-cert", str(authority.cert), "--tls-key", str(authority.key))
    with serving_pages(lake, tmp_path, "--tokens", str(tmp_path / "tokens.json"), *tls) as url:
        run = ["run", f"{url}/openapi.json", "--header", f"Authorization: Bearer {token}", "--no-color"]
        seed = ["--seed", "1"] if os.environ.get("CI") else []  # there the same examples each time, as of Hypothesis
        examples = [*seed, "--checks", "all", "--max-examples", "10", "--tls-verify", str(authority.ca_file)]
        command = [str(Path(sys.executable).with_name("st")), "--config-file", str(tmp_path / "checks.toml")]
        done = subprocess.run(
            [*command, *run, *examples], capture_output=True, text=True, check=False, timeout=240, cwd=tmp_path
        )
    assert done.returncode == 0, done.stdout[-5000:]
    assert "Operations:       15 selected" in done.stdout
