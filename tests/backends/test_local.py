"""The local backend keeps the contract, also across processes."""

import multiprocessing
import os
from pathlib import Path

import anyio
import pytest

from tallymark.backends import InvalidPath, NotFound, NotPermitted
from tallymark.backends.local import SCRATCH, SCRATCH_AGE_MAX_S, THREADS_MAX, LocalBackend
from tallymark.backends.testing import STAGING, StagingConformance, listed
from tests.backends.local_peek import LocalPeek
from tests.backends.race import race
from tests.support.loops import on_both_loops
from tests.support.rights import locked_folder


@pytest.fixture
def peek(tmp_path: Path) -> LocalPeek:
    return LocalPeek(tmp_path / "table")


class TestLocal(StagingConformance):
    @pytest.fixture
    def peek(self, tmp_path):
        return LocalPeek(tmp_path / "table")


def test_of_four_processes_that_race_for_200_names_exactly_one_wins_each(peek):
    start = multiprocessing.get_context("spawn")
    paths = [f"log/{number:03}" for number in range(200)]
    barrier, won = start.Barrier(4), start.Queue()
    racers = [start.Process(target=race, args=(str(peek.root), writer, paths, barrier, won)) for writer in range(4)]
    for racer in racers:
        racer.start()
    taken = [(path, b"%d" % writer) for writer, wins in (won.get(timeout=200) for _ in racers) for path in wins]
    for racer in racers:
        racer.join(200)
    assert sorted(path for path, _ in taken) == paths
    assert peek.objects() == dict(taken)


@on_both_loops
async def test_of_scratch_in_the_table_of_another_writer_nothing_remains(tmp_path):
    backend = LocalBackend(tmp_path / "theirs", scratch=".hoodie/.temp/.unfinished")
    await backend.put(".hoodie/hoodie.properties", b"theirs")

    async def put_and_delete(number: int) -> None:
        for _ in range(20):
            await backend.put_new(f".hoodie/.temp/{number}/MARKERS1", b"a")
            await backend.delete([f".hoodie/.temp/{number}/MARKERS1"])

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(put_and_delete, number)
    left = [path.relative_to(tmp_path).as_posix() for path in (tmp_path / "theirs").rglob("*")]
    assert sorted(left) == ["theirs/.hoodie", "theirs/.hoodie/hoodie.properties"]


@on_both_loops
async def test_what_a_crash_left_in_scratch_is_listed_by_nobody_and_swept_when_old(peek):
    await peek.backend.put("a", b"")
    (peek.root / SCRATCH / "old").write_bytes(b"half")
    (peek.root / SCRATCH / "new").write_bytes(b"being written by another")
    long_ago = (peek.root / "a").stat().st_mtime - SCRATCH_AGE_MAX_S - 60
    os.utime(peek.root / SCRATCH / "old", (long_ago, long_ago))
    assert await listed(peek.backend) == ["a"]
    assert await listed(peek.backend, SCRATCH) == []
    await LocalBackend(peek.root).put("b", b"")
    assert sorted(peek.objects()) == [f"{SCRATCH}/new", "a", "b"]


@on_both_loops
async def test_what_a_crash_left_of_a_closed_staging_directory_goes_with_the_next_close(peek):
    left = peek.root / f"{STAGING}.closed-0123456789ab"
    left.mkdir(parents=True)
    (left / "rows.tmp").write_bytes(b"rows")
    await peek.backend.close_staging(STAGING)
    assert peek.objects() == {}
    assert peek.directories() == []


@on_both_loops
async def test_a_close_takes_no_other_staging_directory_for_its_own(peek):
    odd = "s/[a-z]*"
    await peek.backend.open_staging(odd)
    await peek.backend.open_staging("s/b")
    late = peek.backend.new_file("x", staging=odd)
    other = peek.backend.new_file("y", staging="s/b")
    await peek.backend.close_staging(odd)
    other.publish()
    with pytest.raises(NotFound):
        late.publish()
    assert peek.objects() == {"y": b""}
    assert peek.directories() == ["s/b"]


@on_both_loops
async def test_a_file_where_a_directory_is_needed_is_not_permitted_and_stays(peek):
    await peek.backend.put("a", b"1")
    for ask in (
        lambda: peek.backend.put("a/b", b""),
        lambda: peek.backend.put_new("a/b", b""),
        lambda: peek.backend.open_staging("a"),
        lambda: peek.backend.open_staging("a/b"),
        lambda: peek.backend.put(SCRATCH, b""),
    ):
        with pytest.raises(NotPermitted):
            await ask()
    assert peek.objects() == {"a": b"1"}


@on_both_loops
async def test_a_root_that_is_a_file_is_empty_and_not_permitted_to_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    backend = LocalBackend(tmp_path / "file")
    assert await listed(backend) == []
    with pytest.raises(NotPermitted) as caught:
        await backend.put_new("a", b"")
    assert isinstance(caught.value, PermissionError)
    assert (tmp_path / "file").read_bytes() == b"mine"


@on_both_loops
async def test_a_directory_where_an_object_should_be_is_never_overwritten(peek):
    await peek.backend.put("a/b", b"1")
    with pytest.raises(NotPermitted):
        await peek.backend.put("a", b"")
    with pytest.raises(NotPermitted, match="a directory is where an object should be"):
        await peek.backend.put_new("a", b"")
    assert peek.objects() == {"a/b": b"1"}


@on_both_loops
async def test_a_read_only_directory_is_not_permitted():
    with locked_folder() as root:
        with pytest.raises(NotPermitted, match="Check rights"):
            await LocalBackend(root).put_new("a", b"")
        assert list(root.iterdir()) == []


@on_both_loops
async def test_a_segment_longer_than_the_file_system_takes_is_refused_and_leaves_nothing(peek):
    for path in ("d/" + "a" * 256, "a" * 256 + "/d"):
        for ask in (peek.backend.put, peek.backend.put_new):
            with pytest.raises(InvalidPath, match="shorten"):
                await ask(path, b"")
    assert peek.objects() == {}
    assert peek.directories() == []


@on_both_loops
async def test_a_listing_shows_files_only(peek):
    await peek.backend.put("a/b", b"")
    (peek.root / "link").symlink_to(peek.root / "a")
    (peek.root / "dangling").symlink_to(peek.root / "nowhere")
    os.mkfifo(peek.root / "pipe")
    assert await listed(peek.backend) == ["a/b"]


@on_both_loops
async def test_a_link_to_a_directory_is_not_a_folder(peek):
    await peek.backend.put("t/a/b", b"")
    (peek.root / "t" / "link").symlink_to(peek.root / "t" / "a")
    assert await peek.backend.folders("t") == ["a"]


def test_it_makes_nothing_before_the_first_write(peek):
    assert repr(peek.backend) == f"<LocalBackend {peek.root}>"
    assert not peek.root.exists()


@on_both_loops
async def test_a_disk_that_hangs_delays_no_other(tmp_path):
    """A pipe that no process writes to hangs, as a network mount may."""
    hung, other = LocalBackend(tmp_path / "hung"), LocalBackend(tmp_path / "other")
    for backend in (hung, other):
        await backend.put("object", b"data")
    os.mkfifo(tmp_path / "hung" / "pipe")
    try:
        async with anyio.create_task_group() as tasks:
            for _ in range(THREADS_MAX + 1):
                tasks.start_soon(hung.get, "pipe")
            await anyio.wait_all_tasks_blocked()
            with anyio.move_on_after(0.2) as patience:
                await hung.get("object")
            assert patience.cancelled_caught, "all threads of this disk hang"
            assert await other.get("object") == b"data"
            tasks.cancel_scope.cancel()
    finally:
        writing = os.open(tmp_path / "hung" / "pipe", os.O_RDWR)
        await anyio.sleep(0.1)
        os.close(writing)
