"""Disks that are full, read-only, split or foreign: what was there stays, and the error names disk, rule and remedy."""

import errno
import os
import re
import resource
from pathlib import Path
from typing import BinaryIO

import pytest

from tallymark.backends import InvalidPath, NotPermitted, Unavailable
from tallymark.backends.local import SCRATCH, LocalBackend
from tallymark.backends.testing import STAGING, listed
from tests.backends.local_peek import LocalPeek
from tests.backends.test_local_durability import failing
from tests.support.loops import on_both_loops
from tests.support.mounted import make_read_only, mounted

PUTS = pytest.mark.parametrize("verb", ["put", "put_new"])


@pytest.fixture
def peek(tmp_path: Path) -> LocalPeek:
    return LocalPeek(tmp_path / "table")


@pytest.fixture
def small(tmp_path: Path):
    """A disk of 256 kB with room for 32 files."""
    with mounted(tmp_path / "small", "size=256k,nr_inodes=32") as folder:
        yield folder


@pytest.fixture
def small_peek(small: Path) -> LocalPeek:
    return LocalPeek(small / "table")


@PUTS
@on_both_loops
async def test_a_full_disk_is_named_and_keeps_what_it_had(small, small_peek, verb):
    await small_peek.backend.put("a", b"before")
    full = rf"{re.escape(str(small))} \(tmpfs.*is full \(.* bytes.* are free\); nothing was written\. Free space"
    for path in ("a", "b") if verb == "put" else ("b", "p=1/c"):
        with pytest.raises(NotPermitted, match=full):
            await getattr(small_peek.backend, verb)(path, b"x" * 300_000)
    assert small_peek.objects() == {"a": b"before"}
    assert small_peek.directories() == []


@PUTS
@on_both_loops
async def test_a_disk_takes_puts_again_once_there_is_room(small, small_peek, verb):
    (small / "ballast").write_bytes(b"x" * 200_000)
    with pytest.raises(NotPermitted):
        await getattr(small_peek.backend, verb)("a", b"x" * 100_000)
    (small / "ballast").unlink()
    await getattr(small_peek.backend, verb)("a", b"x" * 100_000)
    assert small_peek.objects() == {"a": b"x" * 100_000}


@on_both_loops
async def test_a_disk_without_room_for_one_more_file_says_so(small, small_peek):
    await small_peek.backend.put("a", b"before")
    for number in range(40):
        try:
            (small / f"{number}").touch()
        except OSError:
            break
    with pytest.raises(NotPermitted, match="and 0 files are free"):
        await small_peek.backend.put_new("b", b"")
    with pytest.raises(NotPermitted, match="is full"):
        await small_peek.backend.open_staging("s/staged")
    assert small_peek.objects() == {"a": b"before"}


@on_both_loops
async def test_a_disk_that_fills_up_under_a_data_file_is_named_by_its_sink_and_the_file_is_gone(small, small_peek):
    await small_peek.backend.open_staging(STAGING)
    file = small_peek.backend.new_file("p=1/a", staging=STAGING)
    with pytest.raises(NotPermitted, match=rf"p=1/a: {re.escape(str(small))} .*is full"):
        write_all(file.sink, b"x" * 1_000_000)
    file.abandon()
    await small_peek.backend.close_staging(STAGING)
    assert small_peek.objects() == {}


@on_both_loops
async def test_a_disk_mounted_read_only_can_be_read_and_is_named_by_each_write(small, small_peek):
    await small_peek.backend.put("p/a", b"1")
    make_read_only(small)
    backend = LocalBackend(small_peek.root)
    assert await listed(backend) == ["p/a"]
    assert await backend.get("p/a") == b"1"
    for ask in (
        lambda: backend.put("p/a", b"2"),
        lambda: backend.put_new("p/b", b"2"),
        lambda: backend.delete(["p/a"]),
        lambda: backend.open_staging(STAGING),
    ):
        with pytest.raises(NotPermitted, match=rf"{re.escape(str(small))} \(tmpfs.*is read-only.*Mount it for writing"):
            await ask()
    assert small_peek.objects() == {"p/a": b"1"}


@on_both_loops
async def test_a_partition_on_another_disk_is_refused_with_both_named(tmp_path, peek):
    with mounted(peek.root / "p=1", "size=256k") as other:
        for ask in (peek.backend.put, peek.backend.put_new):
            with pytest.raises(
                NotPermitted, match=rf"hard links are not possible between .* and {re.escape(str(other))} \(tmpfs"
            ):
                await ask("p=1/a", b"")
        await peek.backend.open_staging(STAGING)
        file = peek.backend.new_file("p=1/a", staging=STAGING)
        with pytest.raises(NotPermitted, match="hard links are not possible between"):
            file.publish()
        assert peek.objects() == {}


@on_both_loops
async def test_a_limit_of_file_sizes_is_named(peek):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, before[1]))
    try:
        with pytest.raises(NotPermitted, match="ulimit -f"):
            await peek.backend.put_new("a", b"x" * 3_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert peek.objects() == {}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (errno.ENOSPC, "is full .* Free space"),
        (errno.EDQUOT, f"the quota of user {os.geteuid()} on .* is used up"),
        (errno.EROFS, "is read-only"),
        (errno.EPERM, "this process is user .* Check rights"),
        (errno.EACCES, "this process is user .* Check rights"),
    ],
)
@pytest.mark.parametrize("on", ["any", "file"])
@PUTS
@on_both_loops
async def test_what_a_sync_tells_of_the_disk_is_told_with_rule_and_remedy(peek, monkeypatch, verb, on, code, told):
    failing(monkeypatch, "fsync", code, on=on)
    with pytest.raises(NotPermitted, match=rf"p/a: .*{told}"):
        await getattr(peek.backend, verb)("p/a", b"x" * 100_000)
    assert peek.objects() == {}
    assert peek.directories() == []


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN])
@PUTS
@on_both_loops
async def test_a_disk_that_fails_to_sync_is_unavailable_and_nothing_has_its_name(peek, monkeypatch, verb, code):
    await peek.backend.put("a", b"before")
    monkeypatch.setattr(os, "fsync", raising(OSError(code, os.strerror(code))))
    with pytest.raises(Unavailable, match=rf"{os.strerror(code)} on .*may have succeeded or not"):
        await getattr(peek.backend, verb)("b", b"rows")
    assert peek.objects() == {"a": b"before"}


@PUTS
@on_both_loops
async def test_a_file_system_that_does_not_sync_directories_is_refused_before_anything_has_a_name(
    peek, monkeypatch, verb
):
    (peek.root / SCRATCH).mkdir(parents=True)
    failing(monkeypatch, "fsync", errno.EINVAL, on="directory")
    for _ in range(2):
        with pytest.raises(NotPermitted, match="does not sync directories"):
            await getattr(peek.backend, verb)("a", b"")
    assert peek.objects() == {}


@on_both_loops
async def test_a_name_that_the_file_system_does_not_take_is_an_invalid_path(peek, monkeypatch):
    (peek.root / "p").mkdir(parents=True)
    monkeypatch.setattr(os, "link", raising(OSError(errno.EINVAL, "Invalid argument", "source", None, "p/a:b")))
    with pytest.raises(InvalidPath, match="takes no such name"):
        await peek.backend.put_new("p/a:b", b"")
    assert peek.objects() == {}


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK])
@on_both_loops
async def test_a_file_system_without_hard_links_is_named_to_an_object_and_to_a_data_file(peek, monkeypatch, code):
    await peek.backend.open_staging(STAGING)
    file = peek.backend.new_file("p=1/a", staging=STAGING)
    monkeypatch.setattr(os, "link", raising(OSError(code, os.strerror(code), "source", None, "target")))
    reason = r"makes no hard links here .* such as ext4 or xfs"
    with pytest.raises(NotPermitted, match=reason):
        await peek.backend.put_new("p=2/a", b"")
    with pytest.raises(NotPermitted, match=reason):
        file.publish()
    await peek.backend.close_staging(STAGING)
    assert peek.objects() == {}
    assert peek.directories() == []


def write_all(sink: BinaryIO, data: bytes) -> None:
    sink.write(data)
    sink.flush()


def raising(error: OSError):
    def fail(*_arguments: object) -> None:
        raise error

    return fail
