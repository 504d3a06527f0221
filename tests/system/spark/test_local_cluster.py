"""The tests of faults once more, where executors are processes of their own."""

import pytest

from tests.support.jars import java
from tests.support.process import printed_by
from tests.support.spark import LOCAL_CLUSTER, MASTER

pytestmark = pytest.mark.spark


@pytest.mark.release
def test_tasks_fail_on_a_local_cluster_as_they_do_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which has one Spark: these are in another."""
    java()
    monkeypatch.setenv(MASTER, LOCAL_CLUSTER)
    local = ("tests/system/spark/test_faults.py", "-k", "local")
    printed_by("pytest", "-q", *local, "-p", "no:cacheprovider", bound_s=480)
