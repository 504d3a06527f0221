"""What Spark needs to read s3a:// by itself."""

import os

import pyspark
import pytest

from tallymark.bench.hadoop_aws import HADOOP, HADOOP_AWS_JARS
from tests.support.jars import jars, pyspark_jar

OTHER_SPARK = "TALLYMARK_TEST_OTHER_SPARK"
"""The environment variable that says that another release than the pinned one is meant."""

PYSPARK = "4.3.0"
"""The release that the tests are about. Another one wants other jars."""


def hadoop_aws_jars() -> str:
    """For ``spark.jars``. Skips the test where they can be neither found nor fetched; fails it in CI."""
    if pyspark.__version__ != PYSPARK and OTHER_SPARK in os.environ:
        pytest.skip(f"the jars at hand are for PySpark {PYSPARK}")
    bundled = pyspark_jar("hadoop-client-api-*.jar").name
    assert bundled == f"hadoop-client-api-{HADOOP}.jar", f"PySpark bundles {bundled}: name the jars of that Hadoop here"
    return ",".join(map(str, jars(HADOOP_AWS_JARS)))
