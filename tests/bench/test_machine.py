from pathlib import Path

from tallymark.bench.machine import Machine, file_system

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /dev/shm rw,nosuid shared:3 - tmpfs tmpfs rw
24 22 0:22 / /my\\040data rw - xfs /dev/vdb rw
25 22 0:23 / /data rw master:1 propagate_from:2 - btrfs /dev/vdc rw
"""


def test_file_system_is_that_of_the_nearest_mount():
    assert file_system(Path("/home/me"), MOUNTS) == "ext4"
    assert file_system(Path("/dev/shm/x"), MOUNTS) == "tmpfs"
    assert file_system(Path("/data/flights"), MOUNTS) == "btrfs"
    assert file_system(Path("/database"), MOUNTS) == "ext4"
    assert file_system(Path("/my data/x"), MOUNTS) == "xfs"


def test_file_system_of_this_machine_is_found():
    assert file_system(Path("/proc")) == "proc"


def test_machine_tells_processor_cores_kernel_and_releases():
    text = str(Machine.here())
    assert "cores" in text
    assert "Linux" in text
    assert "trio 0." in text
