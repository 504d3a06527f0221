"""The local backend asks the disk for what it promises, and tells what the disk answers."""

import errno
import os
from pathlib import Path

import anyio
import pytest

from tallymark.backends import AlreadyExists, NotPermitted, Unavailable
from tallymark.backends.local import SCRATCH, LocalBackend
from tallymark.backends.testing import STAGING
from tests.backends.local_peek import LocalPeek
from tests.backends.system_calls import SystemCalls
from tests.support.loops import on_both_loops


@pytest.fixture
def peek(tmp_path: Path) -> LocalPeek:
    return LocalPeek(tmp_path)


@pytest.fixture
def calls(peek: LocalPeek, monkeypatch: pytest.MonkeyPatch) -> SystemCalls:
    return SystemCalls(peek.root, monkeypatch)


def failing(monkeypatch: pytest.MonkeyPatch, name: str, code: int, *, on: str = "any") -> None:
    """Let a system call fail; ``on`` restricts fsync to files or directories."""
    real = getattr(os, name)

    def fail(*arguments, **named):
        if on == "any" or (on == "directory") == Path(f"/proc/self/fd/{arguments[0]}").is_dir():
            raise OSError(code, os.strerror(code))
        return real(*arguments, **named)

    monkeypatch.setattr(os, name, fail)


async def written(peek: LocalPeek, verb: str, path: str, data: bytes = b"rows") -> None:
    """Write an object by its verb, or a data file, which is published."""
    if verb != "publish":
        await getattr(peek.backend, verb)(path, data)
        return
    await peek.backend.open_staging(STAGING)
    file = peek.backend.new_file(path, staging=STAGING)
    file.sink.write(data)
    try:
        file.publish()
    finally:
        file.abandon()


@pytest.mark.parametrize(("verb", "place"), [("put", "replace"), ("put_new", "link"), ("publish", "link")])
@on_both_loops
async def test_bytes_are_synced_then_named_then_the_directory_is_synced(peek, calls, verb, place):
    await written(peek, verb, "p/q/a")
    begun = ".tmp" if verb == "publish" else ""
    synced = [
        index
        for index, (call, path) in enumerate(calls.made)
        if call == "fsync" and path.startswith((f"{SCRATCH}/", STAGING)) and path.endswith(begun)
    ]
    assert max(synced) < calls.last(place, "p/q/a") < calls.last("fsync", "p/q")


@on_both_loops
async def test_every_new_directory_is_synced_in_its_parent(peek, calls):
    await peek.backend.put_new("p/q/a", b"")
    await peek.backend.open_staging("s/staged")
    for made, parent in [("p", "."), ("p/q", "p"), ("s", "."), ("s/staged", "s")]:
        assert calls.last("mkdir", made) < calls.last("fsync", parent)


@on_both_loops
async def test_a_directory_that_another_just_made_is_synced_in_its_parent_too(peek, calls):
    (peek.root / "p/q").mkdir(parents=True)
    calls.clear()
    await peek.backend.put_new("p/q/a", b"")
    assert {("fsync", "."), ("fsync", "p"), ("fsync", "p/q")} <= set(calls.made)


@on_both_loops
async def test_a_put_into_a_known_directory_costs_two_syncs(peek, calls):
    await peek.backend.put_new("p/q/a", b"")
    calls.clear()
    await peek.backend.put_new("p/q/b", b"")
    assert calls.count("fsync") == 2


@on_both_loops
async def test_a_directory_that_was_pruned_and_made_anew_is_synced_again(peek, calls):
    await peek.backend.put("p/q/a", b"")
    await peek.backend.delete(["p/q/a"])
    (peek.root / "p/q").mkdir(parents=True)
    calls.clear()
    await peek.backend.put("p/q/a", b"")
    assert {("fsync", "."), ("fsync", "p"), ("fsync", "p/q")} <= set(calls.made)


@on_both_loops
async def test_a_delete_is_synced_before_it_returns(peek, calls):
    await peek.backend.put("p/a", b"")
    await peek.backend.put("p/b", b"")
    await peek.backend.delete(["p/a"])
    assert calls.last("unlink", "p/a") < calls.last("fsync", "p")


@pytest.mark.parametrize(("absent", "nearest"), [("p/x", "p"), ("p/q/r/x", "p"), ("x/y", ".")])
@on_both_loops
async def test_a_repeated_delete_makes_durable_what_an_interrupted_one_did(peek, calls, absent, nearest):
    await peek.backend.put("p/a", b"")
    calls.clear()
    await peek.backend.delete([absent])
    assert calls.made == [("fsync", nearest)]


@on_both_loops
async def test_nobody_reads_or_is_told_to_be_taken_what_a_crash_could_still_take_back(peek, calls):
    (peek.root / "p").mkdir()
    (peek.root / "p/a").write_bytes(b"another's, its name not yet synced")
    with pytest.raises(AlreadyExists):
        await peek.backend.put_new("p/a", b"")
    assert {("fsync", "."), ("fsync", "p")} <= set(calls.made)
    for read in (LocalBackend(peek.root).get("p/a"), LocalBackend(peek.root).get_range("p/a", 0, 1)):
        calls.clear()
        await read
        assert {("fsync", "."), ("fsync", "p")} <= set(calls.made)


@on_both_loops
async def test_a_close_is_synced_before_it_returns_also_when_another_did_the_renaming(peek, calls):
    await peek.backend.open_staging(STAGING)
    await peek.backend.put(".hoodie/.temp/001/MARKERS0", b"")
    calls.clear()
    await peek.backend.close_staging(STAGING)
    assert calls.verbs().index("rename") < calls.last("fsync", ".hoodie/.temp/001")
    calls.clear()
    await peek.backend.close_staging(STAGING)
    assert ("fsync", ".hoodie/.temp/001") in calls.made


@on_both_loops
async def test_a_full_disk_under_a_data_file_is_not_permitted_and_the_file_is_gone(peek, monkeypatch):
    failing(monkeypatch, "fsync", errno.ENOSPC, on="file")
    with pytest.raises(NotPermitted, match="p/a"):
        await written(peek, "publish", "p/a")
    assert peek.objects() == {}


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("verb", ["put", "put_new", "publish"])
@on_both_loops
async def test_once_something_has_its_name_a_failing_disk_means_unknown(peek, monkeypatch, verb, code):
    (peek.root / SCRATCH).mkdir(parents=True)
    await peek.backend.open_staging(STAGING)
    failing(monkeypatch, "fsync", code, on="directory")
    with pytest.raises(Unavailable) as caught:
        await written(peek, verb, "a", b"1")
    assert isinstance(caught.value, OSError)
    assert peek.objects() == {"a": b"1"}


@on_both_loops
async def test_a_failing_read_or_listing_is_unavailable(peek, monkeypatch):
    await peek.backend.put("a", b"")
    failing(monkeypatch, "scandir", errno.EIO)
    with pytest.raises(Unavailable):
        [entry async for entry in peek.backend.list("")]


@pytest.mark.parametrize("verb", ["put", "put_new"])
@on_both_loops
async def test_a_writer_whose_scratch_file_was_swept_is_told_that_nothing_is_known(peek, monkeypatch, verb):
    place = {"put": "replace", "put_new": "link"}[verb]
    real = getattr(os, place)

    def sweep_first(source, target):
        Path(source).unlink()
        real(source, target)

    monkeypatch.setattr(os, place, sweep_first)
    with pytest.raises(Unavailable):
        await getattr(peek.backend, verb)("a", b"")
    assert peek.objects() == {}


@on_both_loops
async def test_a_directory_that_vanishes_again_and_again_is_unavailable_not_an_endless_loop(peek, monkeypatch):
    real = os.link

    def prune_first(source, target):
        Path(target).parent.rmdir()
        real(source, target)

    (peek.root / "p").mkdir()
    monkeypatch.setattr(os, "link", prune_first)
    with pytest.raises(Unavailable, match="again and again"):
        await peek.backend.put_new("p/a", b"")
    assert peek.objects() == {}


@on_both_loops
async def test_staging_opens_although_its_parent_is_pruned_at_that_moment(peek, monkeypatch):
    real = os.mkdir
    pruned: list[str] = []

    def prune_once(path, *arguments):
        if Path(path).name == "staged" and not pruned:
            pruned.append(path)
            Path(path).parent.rmdir()
        real(path, *arguments)

    monkeypatch.setattr(os, "mkdir", prune_once)
    await peek.backend.open_staging("s/staged")
    assert pruned
    assert peek.directories() == ["s/staged"]


@on_both_loops
async def test_a_cancelled_put_is_given_up_at_once_and_lands_whole_or_not_at_all(peek):
    with anyio.CancelScope() as scope:
        scope.cancel()
        await peek.backend.put("a", b"rows")
    assert scope.cancelled_caught
    assert {path: data for path, data in peek.objects().items() if path == "a"} in ({}, {"a": b"rows"})


def test_a_root_below_directories_that_do_not_exist_is_made_durable_from_the_top(tmp_path, monkeypatch):
    calls = SystemCalls(tmp_path, monkeypatch)
    anyio.run(LocalBackend(tmp_path / "x/y").put, "a", b"")
    assert calls.last("mkdir", "x") < calls.last("fsync", ".")
    assert calls.last("mkdir", "x/y") < calls.last("fsync", "x")
