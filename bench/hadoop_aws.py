"""What Spark needs to reach s3a:// by itself: hadoop-aws of the Hadoop that PySpark bundles, and the AWS SDK below it.

Hadoop names the SDK's bundle of all services, 686 MB. Of its modules those that S3 takes are 11 MB.
"""

HADOOP = "3.5.0"
"""Of PySpark 4.3.0. Another PySpark wants other jars."""

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
