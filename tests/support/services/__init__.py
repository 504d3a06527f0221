"""Servers that tests start: S3, GCS, HDFS, Spark standalone, and a proxy that injects faults."""
