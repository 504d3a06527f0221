"""A Spark session with Hive's metastore, which needs a process of its own: ``pytest -m hive``."""

import os
from collections.abc import Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.support.jars import QUICK_START, java
from tests.support.spark import LOCAL, MASTER, pytest_collection_modifyitems, start_session

__all__ = ["hive", "pytest_collection_modifyitems"]

DATABASE = "db"


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    java()
    if SparkContext._active_spark_context is not None:
        pytest.skip("a session without a metastore runs in this process; run these alone: pytest -m hive")
    folder = tmp_path_factory.mktemp("metastore")
    session = start_session(
        os.environ.get(MASTER, LOCAL),
        **{
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
            "spark.driver.extraJavaOptions": f"{QUICK_START} -Dderby.system.home={folder}",
        },
    )
    session.sql(f"CREATE DATABASE {DATABASE}")
    yield session
    session.stop()
