"""HDFS keeps the contract: on a real NameNode with two DataNodes, which Hadoop's own client looks into."""

import pytest

from tallymark.backends.testing import StagingConformance
from tests.backends.hdfs_peek import HdfsPeek


class TestHdfs(StagingConformance):
    """Fewer objects than elsewhere: each new one goes through two DataNodes, which share this machine."""

    loops = ("trio",)
    caller_count = 16
    race_round_count = 5
    listed_object_count = 400
    deleted_object_count = 200
    refused_paths = ("s3:/bucket/:key",)

    @pytest.fixture
    def peek(self, dfs):
        return HdfsPeek(dfs)
