"""The doctor on a real NameNode with two DataNodes."""

from tests.backends.hdfs_peek import HdfsPeek
from tests.cli.scene import run
from tests.support.minidfs import MiniDfs


def test_hdfs_is_fit_and_not_even_a_directory_is_left(dfs: MiniDfs):
    peek = HdfsPeek(dfs)
    result = run("doctor", peek.backend.url, "--seconds=200")
    assert result.exit_code == 0, result.stdout
    assert "closes staging for good       kept" in result.stdout
    assert peek.objects() == {}
    assert dfs.directories(peek.root) in ([], [""])
