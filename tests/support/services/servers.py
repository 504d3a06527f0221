"""Fixtures of stores that run as servers: one server for all tests of a process, whatever folders they are in.

Their modules are imported when the first test uses one: those of HDFS and S3 load py4j and boto3.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.services.gcs_facade import GcsFacade
    from tests.support.services.minidfs import MiniDfs
    from tests.support.services.s3_server import S3Server


@pytest.fixture(scope="session")
def dfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator["MiniDfs"]:
    """The cluster; each test has its own directory in it."""
    from tests.support.services.minidfs import mini_dfs

    with mini_dfs(tmp_path_factory.mktemp("dfs")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def gcs() -> Iterator["GcsFacade"]:
    from tests.support.services.gcs_facade import gcs_facade

    with gcs_facade() as facade:
        yield facade


@pytest.fixture(scope="session")
def s3() -> Iterator["S3Server"]:
    """The server, and its credentials in the environment."""
    from tests.support.services.s3_server import ENVIRONMENT, s3_server

    pytest.importorskip("moto", reason="the S3 server of the tests is moto[server]") if "CI" not in os.environ else None
    with s3_server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture
def bucket(s3: "S3Server") -> Iterator[str]:
    """A new bucket, which is dropped after the test."""
    name = s3.bucket()
    yield name
    s3.drop(name)


@pytest.fixture(scope="module")
def s3_keys() -> Iterator[None]:
    """Credentials in the environment, for servers that check none."""
    from tests.support.services.s3_server import ENVIRONMENT

    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield
