"""Ceph's RADOS Gateway, an S3 server that nobody here wrote: a monitor, one OSD in memory, and the gateway.

Started by hand as root, without systemd and containers. With authentication off the gateway does not start (tried
with 16.2.15), so each daemon gets a key.
"""

import json
import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.support.process import await_that
from tests.support.services.s3_server import ENVIRONMENT, S3Server

PROGRAMS = ("radosgw", "radosgw-admin", "ceph", "ceph-mon", "ceph-osd", "ceph-mgr", "ceph-authtool", "monmaptool")

MISSING = "install radosgw ceph-mon ceph-osd ceph-mgr ceph-common, and run as root"

COMMAND_S_MAX = 120.0
"""Seconds for one of Ceph's commands; those that ask the monitor wait until it is there."""

CONFIGURATION = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon_port},v1:127.0.0.1:{old_mon_port}]
mon initial members = a
public network = 127.0.0.0/8
keyring = {folder}/keyring
run dir = {folder}
log file =
log to file = false
admin socket =
mon data = {folder}/mon
osd data = {folder}/osd
mgr data = {folder}/mgr
osd objectstore = memstore
memstore device bytes = 4294967296
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
mgr initial modules =
rgw dynamic resharding = false
"""


def is_here() -> bool:
    return os.geteuid() == 0 and all(shutil.which(program) for program in PROGRAMS)


@dataclass
class Rgw(S3Server):
    """A running gateway."""

    @cached_property
    def version(self) -> str:
        return subprocess.run(["radosgw", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]


@contextmanager
def rgw_server(folder: Path) -> Iterator[Rgw]:
    """A gateway with one user, whose keys are those of ``ENVIRONMENT``, until the block ends."""
    with ExitStack() as running:
        cluster = _Cluster(folder, running)
        cluster.start_monitor()
        cluster.start_osd()
        endpoint = cluster.start_gateway()
        yield Rgw(endpoint)


class _Cluster:
    def __init__(self, folder: Path, running: ExitStack) -> None:
        self._folder = folder
        self._running = running
        self._fsid = str(uuid.uuid4())
        self._mon_port, self._old_mon_port, self._rgw_port = _free_ports(3)
        (folder / "ceph.conf").write_text(
            CONFIGURATION.format(
                fsid=self._fsid, folder=folder, mon_port=self._mon_port, old_mon_port=self._old_mon_port
            )
        )

    def start_monitor(self) -> None:
        keyring = self._folder / "keyring"
        keyring.write_text(
            f'[mon.]\n\tkey = {_key()}\n\tcaps mon = "allow *"\n'
            f"[client.admin]\n\tkey = {_key()}\n"
            + "".join(f'\tcaps {daemon} = "allow *"\n' for daemon in ("mon", "osd", "mgr"))
        )
        address = f"[v2:127.0.0.1:{self._mon_port},v1:127.0.0.1:{self._old_mon_port}]"
        monmap = str(self._folder / "monmap")
        self._run("monmaptool", "--create", "--addv", "a", address, "--fsid", self._fsid, monmap)
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap, "--keyring", str(keyring))
        self._start("ceph-mon", "-i", "a")

    def start_osd(self) -> None:
        identity, key = str(uuid.uuid4()), _key()
        self._run("ceph", "osd", "new", identity, "-i", "-", given=json.dumps({"cephx_secret": key}))
        (self._folder / "osd").mkdir()
        self._add_key("osd.0", key)
        self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", identity)
        self._start("ceph-osd", "-i", "0")
        (self._folder / "mgr").mkdir()
        self._new_key("mgr.x", "mon", "allow profile mgr", "osd", "allow *")
        self._start("ceph-mgr", "-i", "x")

    def start_gateway(self) -> str:
        self._new_key("client.rgw.x", "mon", "allow rw", "osd", "allow rwx")
        keys = ENVIRONMENT["AWS_ACCESS_KEY_ID"], ENVIRONMENT["AWS_SECRET_ACCESS_KEY"]
        user = ("--uid=tests", "--display-name=tests", f"--access-key={keys[0]}", f"--secret-key={keys[1]}")
        self._run("radosgw-admin", "user", "create", *user)
        frontend = f"beast endpoint=127.0.0.1:{self._rgw_port}"
        self._start("radosgw", "-n", "client.rgw.x", f"--rgw-frontends={frontend}")
        await_that(lambda: _is_open(self._rgw_port), "radosgw is there", poll_s=0.2)
        return f"http://127.0.0.1:{self._rgw_port}"

    def _new_key(self, name: str, *caps: str) -> None:
        printed = self._run("ceph", "auth", "get-or-create", name, *caps)
        with (self._folder / "keyring").open("a") as keyring:
            keyring.write(printed)

    def _add_key(self, name: str, key: str) -> None:
        with (self._folder / "keyring").open("a") as keyring:
            keyring.write(f"[{name}]\n\tkey = {key}\n")

    def _run(self, program: str, *arguments: str, given: str | None = None) -> str:
        command = [program, "-c", str(self._folder / "ceph.conf"), *arguments]
        if program == "monmaptool":
            command = [program, *arguments]
        ended = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=COMMAND_S_MAX)
        assert ended.returncode == 0, f"{' '.join(command)}: {ended.stderr}"
        return ended.stdout

    def _start(self, program: str, *arguments: str) -> None:
        command = [program, "-c", str(self._folder / "ceph.conf"), "-f", *arguments]
        with (self._folder / f"{program}.log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._running.callback(process.wait, 30)
        self._running.callback(process.kill)


def _key() -> str:
    return subprocess.run(
        ["ceph-authtool", "--gen-print-key"], capture_output=True, text=True, check=True
    ).stdout.strip()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _is_open(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
