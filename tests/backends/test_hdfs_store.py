"""What HDFS does beyond the promises: many writers, forks, crashes, dead writers' leavings, wrong addresses."""

import multiprocessing
import socket
import time
from collections.abc import Callable, Mapping

import anyio
import pytest

from tallymark.backends import (
    AlreadyExists,
    Backend,
    BackendError,
    InvalidPath,
    NotPermitted,
    StorageOptions,
    Unavailable,
    open_backend,
)
from tallymark.backends.hdfs import SCRATCH, SCRATCH_AGE_MAX_S, HdfsBackend, HdfsClient, parse_hdfs
from tallymark.backends.retry import Retries, RetrySettings
from tallymark.backends.testing import STAGING, listed
from tests.backends.hdfs_peek import HdfsPeek
from tests.support.loops import on_both_loops, on_trio_first

WRITERS = 32
ROUNDS = 100


@pytest.fixture
def peek(dfs) -> HdfsPeek:
    return HdfsPeek(dfs)


@on_both_loops
async def test_of_32_renames_to_one_name_exactly_one_wins_in_each_of_100_rounds(peek):
    """Empty objects, which need no DataNode: what is raced for is the rename."""
    won: list[str] = []

    async def race(path: str) -> None:
        try:
            await peek.backend.put_new(path, b"")
        except AlreadyExists:
            return
        won.append(path)

    rounds = [f"log/{number:03}" for number in range(ROUNDS // 2)]  # on each of the two loops
    for path in rounds:
        async with anyio.create_task_group() as group:
            for _ in range(WRITERS):
                group.start_soon(race, path)
    assert won == rounds
    assert peek.objects() == dict.fromkeys(rounds, b"")


def test_a_backend_that_was_used_before_a_fork_works_in_the_child(peek):
    anyio.run(peek.backend.put, "before", b"1")
    fork = multiprocessing.get_context("fork")
    mine, theirs = fork.Pipe()
    child = fork.Process(target=_answer, args=(peek.backend, theirs))
    child.start()
    try:
        assert mine.poll(20), "the child hangs"
        assert mine.recv() == b"1"
    finally:
        child.kill()
        child.join()
    assert peek.objects() == {"before": b"1", "child": b"2"}
    assert anyio.run(peek.backend.get, "child") == b"2"


def _answer(backend: Backend, line) -> None:
    async def ask() -> bytes:
        await backend.put("child", b"2")
        return await backend.get("before")

    line.send(anyio.run(ask, backend="trio"))


@on_trio_first
async def test_what_was_acked_is_there_after_every_process_of_the_cluster_was_killed(peek):
    await peek.backend.open_staging(STAGING)
    file = peek.backend.new_file("p=1/rows", staging=STAGING)
    file.sink.write(b"rows" * 100_000)
    file.publish()
    await peek.backend.put("put", b"2")
    await peek.backend.put_new("new", b"3")
    await peek.backend.put("deleted", b"4")
    await peek.backend.delete(["deleted"])
    await peek.backend.close_staging(STAGING)
    peek.dfs.crash()
    peek.dfs.restart()
    assert peek.objects() == {"p=1/rows": b"rows" * 100_000, "put": b"2", "new": b"3"}
    assert await peek.backend.get("put") == b"2"


@on_both_loops
async def test_what_a_dead_writer_left_in_scratch_is_listed_by_nobody_and_swept_when_old(peek):
    await peek.backend.put("a", b"")
    for name in ("old", "new"):
        peek.dfs.leave_open(f"{peek.root}/{SCRATCH}/{name}")
    peek.dfs.set_age(f"{peek.root}/{SCRATCH}/old", SCRATCH_AGE_MAX_S + 60)
    assert await listed(peek.backend) == ["a"]
    assert await listed(peek.backend, SCRATCH) == []
    await open_backend(peek.backend.url).put("b", b"")
    assert sorted(peek.objects()) == [f"{SCRATCH}/new", "a", "b"]


@on_both_loops
async def test_a_file_that_a_dead_writer_left_open_in_staging_goes_with_the_close(peek):
    await peek.backend.open_staging(STAGING)
    peek.dfs.leave_open(f"{peek.root}/{STAGING}/0123.tmp")
    peek.dfs.leave_open(f"{peek.root}/{STAGING}.closed-0123456789ab/4567.tmp")  # by a close that a crash interrupted
    await peek.backend.close_staging(STAGING)
    assert peek.objects() == {}
    assert peek.directories() == []


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
async def test_a_directory_where_an_object_should_be_is_never_overwritten(peek):
    await peek.backend.put("a/b", b"1")
    with pytest.raises(NotPermitted):
        await peek.backend.put("a", b"")
    with pytest.raises(AlreadyExists):
        await peek.backend.put_new("a", b"")
    assert peek.objects() == {"a/b": b"1"}


@pytest.mark.parametrize("path", ["a:b", "p=1:2/x", "a" * 256, "é" * 128 + "/x", "a/.snapshot/b", ".snapshot"])
@on_both_loops
async def test_a_name_that_hdfs_cannot_keep_is_refused_with_the_rule(peek, path):
    for ask in (peek.backend.put, peek.backend.put_new):
        with pytest.raises(InvalidPath, match=r"has a .*; HDFS does not keep such a name: choose another"):
            await ask(path, b"")
    assert peek.objects() == {}


class Losing(HdfsBackend):
    """Loses the first rename to an object's name, or what came of it."""

    def __init__(self, peek: HdfsPeek, *, is_done: bool, meanwhile: Callable[[], None] = lambda: None) -> None:
        options = StorageOptions(request_timeout_s=5)
        retries = Retries(RetrySettings(pause_s=0.001))
        super().__init__(HdfsClient(peek.dfs.url.removeprefix("hdfs://"), options), peek.root, options, retries)
        self._is_done = is_done
        self._meanwhile = meanwhile
        self.lost = 0

    def rename(self, source: str, target: str, *, overwrite: bool = False) -> None:
        if self.lost or SCRATCH in target:
            super().rename(source, target, overwrite=overwrite)
            return
        self.lost = 1
        if self._is_done:
            super().rename(source, target, overwrite=overwrite)
        self._meanwhile()
        raise Unavailable("the answer is lost")


@pytest.mark.parametrize("is_done", [True, False])
@on_both_loops
async def test_a_rename_whose_answer_is_lost_is_found_out_and_done_once(peek, is_done):
    store = Losing(peek, is_done=is_done)
    await store.put_new("a", b"mine")
    assert store.lost == 1
    assert peek.objects() == {"a": b"mine"}
    with pytest.raises(AlreadyExists):
        await store.put_new("a", b"mine")


@on_both_loops
async def test_after_a_lost_rename_anothers_equal_object_is_not_taken_for_ones_own(peek):
    store = Losing(peek, is_done=False, meanwhile=lambda: peek.dfs.put(f"{peek.root}/a", b"equal"))
    with pytest.raises(AlreadyExists):
        await store.put_new("a", b"equal")
    assert store.lost == 1
    assert peek.objects() == {"a": b"equal"}


@pytest.mark.parametrize(
    ("url", "authority", "root"),
    [
        ("hdfs://namenode:8020/data/flights", "namenode:8020", "/data/flights"),
        ("hdfs://cluster/data/flights/", "cluster", "/data/flights"),
        ("hdfs://cluster/a%20b c", "cluster", "/a%20b c"),
        ("hdfs:///data", "", "/data"),
        ("hdfs://cluster/", "cluster", ""),
    ],
)
def test_a_url_names_a_namenode_or_a_service_and_a_path_as_it_is_written(url, authority, root):
    assert parse_hdfs(url, url.removeprefix("hdfs:")) == (authority, root)
    assert open_backend(url).url == f"hdfs://{authority}{root or '/'}"


@pytest.mark.parametrize(
    "url", ["hdfs:", "hdfs:/data", "hdfs://host", "hdfs://user@host/data", "hdfs://h/a//b", "hdfs://h/a:b"]
)
def test_a_url_that_names_no_directory_of_hdfs_is_refused(url):
    with pytest.raises(InvalidPath):
        open_backend(url)


@on_both_loops
async def test_a_namenode_is_found_by_the_name_of_its_service(peek):
    host = peek.dfs.url.removeprefix("hdfs://")
    service = {
        "dfs.nameservices": "cluster",
        "dfs.ha.namenodes.cluster": "nn1,nn2",
        "dfs.namenode.rpc-address.cluster.nn1": "127.0.0.1:1",
        "dfs.namenode.rpc-address.cluster.nn2": host,
        "fs.defaultFS": "hdfs://cluster",
    }
    options = StorageOptions(hadoop=tuple(service.items()))
    for number, url in enumerate((f"hdfs://cluster{peek.root}", f"hdfs://{peek.root}")):
        await open_backend(url, options=options).put(str(number), b"")
    assert sorted(peek.objects()) == ["0", "1"]


DEAD = {
    "nobody listens there": ("hdfs://127.0.0.1:1/t", Unavailable, "refused"),
    "no such host": ("hdfs://no.such.host.invalid:8020/t", NotPermitted, "name a NameNode"),
    "no such service": ("hdfs://cluster/t", NotPermitted, "name a NameNode"),
}


@pytest.mark.slow
def test_every_wrong_address_is_a_clear_error_within_30_s():
    begun = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"hdfs://127.0.0.1:{mute.getsockname()[1]}/t"
        dead = {**DEAD, "no answer at all": (url, Unavailable, "no answer")}
        errors = anyio.run(_errors, {name: url for name, (url, _, _) in dead.items()}, backend="trio")
    assert time.monotonic() < begun + 30
    for name, (_, kind, said) in dead.items():
        assert type(errors[name]) is kind, (name, errors[name])
        assert said in str(errors[name])


async def _errors(urls: Mapping[str, str]) -> dict[str, BackendError]:
    errors: dict[str, BackendError] = {}

    async def ask(name: str, url: str) -> None:
        try:
            await open_backend(url).put("a", b"")
        except BackendError as error:
            errors[name] = error

    async with anyio.create_task_group() as group:
        for name, url in urls.items():
            group.start_soon(ask, name, url)
    return errors


def impatient(peek: HdfsPeek) -> HdfsBackend:
    options = StorageOptions(request_timeout_s=3)
    retries = Retries(RetrySettings(attempt_timeout_s=3, timeout_s=9))
    return HdfsBackend(HdfsClient(peek.dfs.url.removeprefix("hdfs://"), options), peek.root, options, retries)


@on_trio_first
async def test_a_namenode_that_hangs_is_a_clear_error_and_goes_on_where_it_was(peek):
    store = impatient(peek)
    await peek.backend.put_new("a", b"1")
    with peek.dfs.paused():
        begun = time.monotonic()
        with pytest.raises(Unavailable, match="no answer within"):
            await store.put_new("b", b"2")
        assert time.monotonic() < begun + RetrySettings().timeout_s
    await peek.backend.put_new("b", b"2")
    assert peek.objects().items() >= {("a", b"1"), ("b", b"2")}


@on_both_loops
async def test_what_a_namenode_refuses_is_told_with_the_remedy_and_changes_nothing(peek, monkeypatch):
    await peek.backend.put("a", b"1")
    peek.dfs.set_rights(peek.root, permission=0o700)
    with monkeypatch.context() as patch:
        patch.setenv("HADOOP_USER_NAME", "mallory")
        other = open_backend(peek.backend.url)
        for ask in (lambda: other.put("b", b""), lambda: other.get("a"), lambda: listed(other)):
            with pytest.raises(NotPermitted, match=r"user=mallory.*; check the rights"):
                await ask()
        with pytest.raises(NotPermitted, match="user=mallory"):
            await other.delete(["a"])
    with peek.dfs.space_quota(peek.root, 1000), pytest.raises(NotPermitted, match=r"quota.*make room"):
        await peek.backend.put_new("b", b"2")
    assert peek.objects() == {"a": b"1"}


@on_trio_first
async def test_safe_mode_is_waited_for_and_then_told(peek):
    await peek.backend.put("a", b"1")
    with peek.dfs.safe_mode():
        begun = time.monotonic()
        with pytest.raises(Unavailable, match=r"SafeMode.*\(tried \d+ times"):
            await impatient(peek).put_new("b", b"2")
        assert time.monotonic() < begun + RetrySettings().timeout_s
        assert await peek.backend.get("a") == b"1"
    assert peek.objects() == {"a": b"1"}
