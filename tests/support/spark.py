"""One Spark session a process, and what tests need to start it."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.hadoop_aws import hadoop_aws_jars
from tests.support.jars import QUICK_START, java
from tests.support.services.s3_server import ENVIRONMENT

MASTER = "TALLYMARK_TEST_MASTER"
"""The environment variable that puts the tests on another master."""

LOCAL = "local[2,2]"
"""Two tasks at once, each tried twice: each failed attempt ends its Python, and starting another takes a second."""

LOCAL_CLUSTER = "local-cluster[2,1,1024]"
"""Two executors in processes of their own."""

WARNINGS = (
    "ignore:distutils Version classes are deprecated:DeprecationWarning",  # Spark 3.5
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:Exception ignored in. <socket.socket fd:pytest.PytestUnraisableExceptionWarning",
)
"""PySpark's own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For the conftest of a folder whose tests use Spark."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.filterwarnings(*WARNINGS))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    java()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():  # for executors; the server of the tests takes any key
            patch.setenv(name, value)
        session = start_session(os.environ.get(MASTER, LOCAL), **_s3_connector())
    yield session
    session.stop()


def start_session(master: str, **conf: str) -> SparkSession:
    """A session without a web interface, on the loopback interface, whose tasks run this very Python."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("tallymark-tests")
    for key, value in {**_CONF, **conf}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # tasks fail here on purpose, each with pages of stack
    return session


def _s3_connector() -> dict[str, str]:
    """Hadoop's, where its jars can be had."""
    try:
        return {"spark.jars": hadoop_aws_jars()}
    except pytest.skip.Exception:
        return {}  # tests that read by it are skipped, when they ask for the jars


_CONF = {
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "1g",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
}
