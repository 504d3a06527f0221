"""What Spark needs to read s3a:// by itself: hadoop-aws of the Hadoop that PySpark bundles, and the AWS SDK below it.

Hadoop names the SDK's bundle of all services, 686 MB. Of its modules those that S3 takes are 11 MB.
"""

import os

import pyspark
import pytest

from tests.support.jars import jars, pyspark_jar

OTHER_SPARK = "TALLYMARK_TEST_OTHER_SPARK"
"""The environment variable that says that another release than the pinned one is meant."""

PYSPARK = "4.3.0"
"""The release that the tests are about. Another one wants other jars."""

HADOOP = "3.5.0"
"""Of that PySpark."""

_SDK = "2.35.4"
"""The SDK's version that this Hadoop's build names."""

_SDK_MODULES = (
    "annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol", "aws-xml-protocol", "checksums",
    "checksums-spi", "crt-core", "endpoints-spi", "http-auth", "http-auth-aws", "http-auth-aws-eventstream",
    "http-auth-spi", "http-client-spi", "identity-spi", "json-utils", "metrics-spi", "netty-nio-client", "profiles",
    "protocol-core", "regions", "retries", "retries-spi", "s3", "s3-transfer-manager", "sdk-core", "sts",
    "third-party-jackson-core", "utils", "utils-lite",
)  # fmt: skip


HADOOP_AWS_JARS = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    *(f"software.amazon.awssdk:{module}:{_SDK}" for module in _SDK_MODULES),
    "software.amazon.eventstream:eventstream:1.0.1",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    "org.reactivestreams:reactive-streams:1.0.4",
)


def hadoop_aws_jars() -> str:
    """For ``spark.jars``. Skips the test where they can be neither found nor fetched; fails it in CI."""
    if pyspark.__version__ != PYSPARK and OTHER_SPARK in os.environ:
        pytest.skip(f"the jars at hand are for PySpark {PYSPARK}")
    bundled = pyspark_jar("hadoop-client-api-*.jar").name
    assert bundled == f"hadoop-client-api-{HADOOP}.jar", f"PySpark bundles {bundled}: name the jars of that Hadoop here"
    return ",".join(map(str, jars(HADOOP_AWS_JARS)))
