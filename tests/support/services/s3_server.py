"""An S3 server for tests: moto in a process of its own, judged around the library by boto3.

It accepts every key and checks no rights, and keeps all objects in memory: buckets are dropped when a test is done.
Its requests are atomic (``s3_program``). The server is as fast as one core, some hundred puts a second.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from tallymark.backends import StorageOptions
from tests.support.process import serving_program

REGION = "us-east-1"

ENVIRONMENT: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret-of-anybody",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Where clients find credentials; for subprocesses too."""


@dataclass
class S3Server:
    """A running server; ``endpoint`` may be that of a proxy in front of it."""

    endpoint: str
    _numbers: Iterator[int] = field(default_factory=count, repr=False)

    @property
    def options(self) -> StorageOptions:
        return self.behind(self.endpoint)

    def behind(self, endpoint: str) -> StorageOptions:
        """The options that lead to this server through a proxy."""
        return StorageOptions(endpoint=endpoint, region=REGION, path_style=True)

    def bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"bucket-{next(self._numbers)}"
        self.client.create_bucket(Bucket=name)
        return name

    def drop(self, bucket: str) -> None:
        """The bucket, its objects and its unfinished uploads are gone: their memory is free."""
        for upload in self.uploads(bucket):
            self.client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        keys = self.keys(bucket)
        for start in range(0, len(keys), 1000):
            objects = [{"Key": key} for key in keys[start : start + 1000]]
            self.client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
        self.client.delete_bucket(Bucket=bucket)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Every key that begins so, sorted, by as many requests as that takes."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def objects(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        """Every object that begins so, key to bytes."""
        return {key: self.get(bucket, key) for key in self.keys(bucket, prefix)}

    def get(self, bucket: str, key: str) -> bytes:
        return bytes(self.client.get_object(Bucket=bucket, Key=key)["Body"].read())

    def uploads(self, bucket: str) -> list[dict[str, Any]]:
        """Multipart uploads that nobody has completed or aborted: they cost money and no listing shows them."""
        return list(self.client.list_multipart_uploads(Bucket=bucket).get("Uploads", []))

    @cached_property
    def client(self) -> Any:
        """boto3's, with one attempt a request."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, max_pool_connections=64),
        )


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server on a free port of this machine, until the block ends or this process dies."""
    with serving_program("tests.support.services.s3_program", **ENVIRONMENT) as port:
        server = S3Server(f"http://127.0.0.1:{port}")
        yield server
        server.client.close()
