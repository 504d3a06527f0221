import logging

import pytest

from tallymark.backends import mounts
from tallymark.backends.local import LocalBackend
from tallymark.backends.mounts import Mount, mount_of
from tests.support.loops import on_both_loops

TABLE = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /data rw,relatime shared:2 master:3 - nfs4 filer:/export rw,vers=4.2
31 22 0:41 / /data10 rw - xfs /dev/sdb rw
32 30 0:42 / /data/over rw - tmpfs none rw
33 32 0:43 / /data/over rw - ext4 /dev/over rw
34 22 0:44 / /with\\040space rw - fuse.sshfs me@host:/a\\134b rw
35 22 0:45 / /camera rw - vfat /dev/sdc1 rw
a line that nobody understands
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    (tmp_path / "mountinfo").write_text(TABLE)
    monkeypatch.setattr(mounts, "MOUNTS", tmp_path / "mountinfo")


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/", Mount("/", "ext4", "/dev/sda1")),
        ("/data/table", Mount("/data", "nfs4", "filer:/export")),
        ("/data", Mount("/data", "nfs4", "filer:/export")),
        ("/data1", Mount("/", "ext4", "/dev/sda1")),
        ("/data10/x", Mount("/data10", "xfs", "/dev/sdb")),
        ("/data/over/x", Mount("/data/over", "ext4", "/dev/over")),
        ("/with space/x", Mount("/with space", "fuse.sshfs", "me@host:/a\\b")),
    ],
)
def test_a_path_lies_on_the_last_mount_of_the_deepest_point_above_it(table, path, mount):
    assert mount_of(path) == mount


@pytest.mark.parametrize(
    ("path", "told"),
    [("/data", "one machine"), ("/with space", "foreign"), ("/camera", "hard links"), ("/data10", None), ("/", None)],
)
def test_a_file_system_that_keeps_less_than_the_contract_has_a_caution(table, path, told):
    mount = mount_of(path)
    assert mount is not None
    assert mount.caution is None if told is None else told in str(mount.caution)


def test_where_no_mounts_can_be_read_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(mounts, "MOUNTS", tmp_path / "none")
    assert mount_of("/") is None


def test_this_machine_s_root_is_found():
    mount = mount_of("/")
    assert mount is not None
    assert mount.point == "/"


@pytest.mark.parametrize(("kind", "level"), [("nfs4", logging.WARNING), ("tmpfs", logging.INFO), ("xfs", None)])
@on_both_loops
async def test_the_first_write_says_once_what_the_disk_does_not_promise(tmp_path, monkeypatch, caplog, kind, level):
    (tmp_path / "mountinfo").write_text(f"30 22 0:40 / {tmp_path} rw - {kind} filer:/export rw\n")
    monkeypatch.setattr(mounts, "MOUNTS", tmp_path / "mountinfo")
    caplog.set_level(logging.INFO, logger="tallymark.backends.local")
    backend = LocalBackend(tmp_path / "table")
    for path in ("a", "b"):
        await backend.put(path, b"")
    told = [(record.levelno, record.getMessage().partition(" ")[0]) for record in caplog.records]
    assert told == ([(level, "disk.cautioned")] if level else [])
    assert level is None or f"{tmp_path} ({kind}, filer:/export)" in caplog.text
