"""Storage options of a Spark session, which travel to its tasks, and Spark's spelling of a table's URL."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import MissingExtra
from tallymark.spark_glue.s3a_options import s3a_options
from tallymark.spark_glue.session import is_connected

HDFS_SETTINGS = (
    "dfs.nameservices",
    "dfs.internal.nameservices",
    "dfs.ha.namenodes.",
    "dfs.namenode.rpc-address",
    "dfs.client.failover.",
    "dfs.client.use.datanode.hostname",
    "dfs.data.transfer.protection",
    "dfs.encrypt.data.transfer",
    "hadoop.rpc.protection",
    "hadoop.security.authentication",
)
"""Prefixes of Hadoop's settings with the addresses of NameNodes, and how to communicate with them."""

_S3 = re.compile(r"s3a?://([^/]*)", flags=re.IGNORECASE)
_HDFS = re.compile(r"hdfs:", flags=re.IGNORECASE)

_CONNECTOR = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def storage_options(session: SparkSession, url: object, given: StorageOptions | None) -> StorageOptions:
    """Return the given options, by default those that follow from the session's Hadoop settings for this URL.

    Over Spark Connect those settings are the server's and cannot be read: none then.

    Raises:
        InvalidRequest: the settings request credentials in a way without a counterpart here; the error names it.
    """
    text = os.fspath(url) if isinstance(url, str | os.PathLike) else ""
    if given is not None or not isinstance(text, str) or is_connected(session):
        return given or StorageOptions()
    if found := _S3.match(text):
        return s3a_options(found[1], HadoopSettings(session), os.environ)
    if _HDFS.match(text):
        return StorageOptions(hadoop=tuple(sorted(HadoopSettings(session).starting_with(HDFS_SETTINGS).items())))
    return StorageOptions()


def native_url(session: SparkSession, url: str) -> str:
    """Return the URL as Spark's own readers take it: Hadoop's connector calls S3 ``s3a``.

    Raises:
        MissingExtra: Spark lacks that connector.
    """
    found = _S3.match(url)
    if found is None:
        return url
    if not is_connected(session):
        if HadoopSettings(session).is_set("fs.s3.impl"):  # a platform that has a connector of its own for s3:
            return url
        _check_connector(session)
    return f"s3a://{url[found.start(1) :]}"


def _check_connector(session: SparkSession) -> None:
    jvm: Any = session.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader.getResource(_CONNECTOR.replace(".", "/") + ".class") is None:
        version = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
        raise MissingExtra(
            "Spark cannot read S3 by itself: it lacks Hadoop's connector; start the session with "
            f"spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}"
        )


class HadoopSettings:
    """Hadoop's settings as the session's readers get them: Hadoop's own, and those of ``spark.hadoop.*``."""

    def __init__(self, session: SparkSession) -> None:
        java: Any = session._jsparkSession
        self._conf: Any = java.sessionState().newHadoopConf()

    def get(self, name: str) -> str | None:
        value: str | None = self._conf.get(name)
        return value

    def is_set(self, name: str) -> bool:
        return self._conf.getPropertySources(name) is not None

    def starting_with(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return all settings with this prefix, as Hadoop resolves them."""
        found = [name + rest for name in names for rest in self._conf.getPropsWithPrefix(name)]
        return {name: self._conf.get(name) for name in found}
