"""What a benchmark says that cannot remove what it made."""

from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from tallymark.backends import StorageOptions, Unavailable
from tallymark.bench.places.hdfs import hdfs
from tallymark.bench.places.near import disk
from tallymark.bench.writes.hdfs_place import directory
from tests.support.loops import on_both_loops
from tests.support.services.minidfs import MiniDfs

NOBODY = "hdfs://127.0.0.1:1/"
"""Nothing listens there."""


def in_the_way(folder: Path) -> None:
    """Put something there that is not removed as a folder is."""
    folder.rename(folder.with_name("moved"))
    folder.symlink_to("moved")


@on_both_loops
async def test_a_folder_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=f"what was made below {tmp_path}/.* could not be removed, please do"):
        async with disk(tmp_path):
            in_the_way(next(tmp_path.iterdir()))


@on_both_loops
async def test_an_hdfs_that_cannot_be_reached_is_an_error_of_ours() -> None:
    pytest.importorskip("hdfs_native", reason="needs the extra [hdfs]")
    with pytest.raises(Unavailable, match=NOBODY):
        async with hdfs(NOBODY, StorageOptions()):
            pass


@on_both_loops
async def test_a_directory_of_hdfs_that_cannot_be_removed_is_named(dfs: MiniDfs) -> None:
    url = f"{dfs.url}/bench-{uuid4().hex}"
    dfs.make_directory(url.removeprefix(dfs.url), permission=0o777)
    said = pytest.raises(Unavailable, match=f"what was made below {url}/.* could not be removed, please do")
    with ExitStack() as refusing, said:
        async with hdfs(url, StorageOptions()):
            refusing.enter_context(dfs.safe_mode())


def test_a_directory_of_writes_on_hdfs_that_cannot_be_removed_is_named() -> None:
    pytest.importorskip("hdfs_native", reason="needs the extra [hdfs]")
    said = pytest.raises(Unavailable, match=f"what was made below {NOBODY}.* could not be removed, please do")
    with said, directory(NOBODY, StorageOptions()):
        pass
