"""What a session's own settings come to."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tallymark import StorageOptions
from tallymark.engine.errors import MissingExtra
from tallymark.spark_glue import storage_options as module
from tallymark.spark_glue.storage_options import native_url, storage_options
from tests.support.services.s3_server import ENVIRONMENT

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Its settings end with the test. Keys are in the environment, from where Spark copies them into ``fs.s3a.*``."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return spark.newSession()


def test_a_session_as_spark_starts_it_asks_for_nothing(session: SparkSession) -> None:
    assert storage_options(session, "s3a://lake/flights", None) == StorageOptions()
    assert storage_options(session, Path("/data/flights"), None) == StorageOptions()
    assert storage_options(session, "gs://lake/flights", None) == StorageOptions()


def test_settings_of_the_session_are_taken_and_options_that_are_given_go_before_them(session: SparkSession) -> None:
    session.conf.set("fs.s3a.endpoint", "https://minio:9000")
    session.conf.set("fs.s3a.bucket.lake.path.style.access", "true")
    assert storage_options(session, "S3A://lake/flights", None) == StorageOptions(
        endpoint="https://minio:9000", path_style=True
    )
    assert storage_options(session, "s3://other", None).path_style is False
    given = StorageOptions(profile="etl")
    assert storage_options(session, "s3a://lake/flights", given) is given


def test_what_leads_to_an_hdfs_is_taken_and_nothing_else(session: SparkSession) -> None:
    ha = {
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1,nn2",
        "dfs.namenode.rpc-address.ns1.nn1": "one:8020",
        "dfs.namenode.rpc-address.ns1.nn2": "two:8020",
        "dfs.client.failover.max.attempts": "3",
    }
    for name, value in {**ha, "fs.s3a.secret.key": "hush", "dfs.blocksize": "1048576"}.items():
        session.conf.set(name, value)
    options = storage_options(session, "hdfs://ns1/flights", None)
    assert ha.items() <= dict(options.hadoop).items()
    assert all(name.startswith(module.HDFS_SETTINGS) for name, _ in options.hadoop)
    assert "hush" not in repr(options)


def test_spark_reads_s3_by_the_connector_that_hadoop_has_for_it(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert native_url(session, "hdfs://namenode/flights") == "hdfs://namenode/flights"
    monkeypatch.setattr(module, "_CONNECTOR", "org.apache.hadoop.fs.Path")  # some class that is there
    assert native_url(session, "s3://lake/flights") == "s3a://lake/flights"
    assert native_url(session, "s3a://lake/a%20b") == "s3a://lake/a%20b"
    monkeypatch.setattr(module, "_CONNECTOR", "org.apache.hadoop.fs.s3a.Missing")
    with pytest.raises(MissingExtra, match=r"spark\.jars\.packages=org\.apache\.hadoop:hadoop-aws:\d"):
        native_url(session, "s3://lake/flights")
    session.conf.set("fs.s3.impl", "com.acme.FileSystem")
    assert native_url(session, "s3://lake/flights") == "s3://lake/flights"
