"""What Spark needs to reach s3a:// by itself: hadoop-aws of the Hadoop that PySpark bundles, and the AWS SDK below it.

Hadoop names the SDK's bundle of all services, hundreds of MB. Of its modules those that S3 takes are 5 to 11 MB.
"""

from collections.abc import Mapping, Sequence

HADOOP = "3.5.0"
"""Of PySpark 4.2 and 4.3."""

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

_SDK_1 = "1.12.262"

_SDK_1_MODULES = (
    "aws-java-sdk-core", "aws-java-sdk-dynamodb", "aws-java-sdk-kms", "aws-java-sdk-s3", "aws-java-sdk-sts",
    "jmespath-java",
)  # fmt: skip

_HADOOP_3_3_4 = (
    "org.apache.hadoop:hadoop-aws:3.3.4",
    *(f"com.amazonaws:{module}:{_SDK_1}" for module in _SDK_1_MODULES),
    "com.fasterxml.jackson.dataformat:jackson-dataformat-cbor:2.15.2",
    "software.amazon.ion:ion-java:1.0.2",
)

CONNECTORS: Mapping[str, Sequence[str]] = {HADOOP: HADOOP_AWS_JARS, "3.3.4": _HADOOP_3_3_4}
"""By the Hadoop that a PySpark bundles; 3.3.4 is that of PySpark 3.5."""
