"""A server that calls itself S3 and ignores preconditions: s3rver 3.7.1, from npm. It stands for all such servers."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tallymark.backends import StorageOptions

PACKAGE = "s3rver@3.7.1"
"""The last release, of 2021."""

BUCKET = "tables"

KEYS = {
    "AWS_ACCESS_KEY_ID": "S3RVER",
    "AWS_SECRET_ACCESS_KEY": "S3RVER",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Those that every s3rver takes; they open nothing else."""

INSTALL_S_MAX = 120.0


@dataclass(frozen=True, slots=True)
class S3rver:
    endpoint: str
    folder: Path
    """Where it keeps objects, three files each."""

    @property
    def options(self) -> StorageOptions:
        return StorageOptions(endpoint=self.endpoint, region="us-east-1", path_style=True)

    def keys(self) -> set[str]:
        """Every object that is stored, read off the disk."""
        end = "._S3rver_object"
        found = self.folder.rglob(f"*{end}")
        return {path.relative_to(self.folder / BUCKET).as_posix().removesuffix(end) for path in found}


@contextmanager
def s3rver(folder: Path) -> Iterator[S3rver]:
    """Installed and running in the folder until the block ends. Without npm or network the test is skipped."""
    program = _installed(folder)
    data = folder / "data"
    data.mkdir()
    where = ("-d", str(data), "-a", "127.0.0.1", "-p", "0", "--no-vhost-buckets", "--configure-bucket", BUCKET)
    with subprocess.Popen(
        [program, *where], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = next((line for line in process.stdout if "listening on" in line), "")
            assert address, "s3rver did not start"
            yield S3rver(f"http://{address.split()[-1]}", data)
        finally:
            process.kill()


def _installed(folder: Path) -> str:
    """The program. Nothing outside of the folder is changed, and no script of a package is run.

    It is a counterexample and nothing that is supported: where npm cannot fetch it, CI goes on without, too.
    """
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm: s3rver comes from there")
    quiet = ("--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--prefix", str(folder))
    done = subprocess.run(
        [npm, "install", *quiet, PACKAGE],
        cwd=folder,
        capture_output=True,
        env=_trusting(),
        text=True,
        timeout=INSTALL_S_MAX,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"{PACKAGE} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    return str(folder / "node_modules" / ".bin" / "s3rver")


def _trusting() -> dict[str, str]:
    """The environment in which npm trusts whom other programs trust: it reads a variable of its own."""
    authorities = os.environ.get("SSL_CERT_FILE", "")
    return {"NODE_EXTRA_CA_CERTS": authorities, **os.environ}
