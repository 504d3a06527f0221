"""An S3 bucket as boto3 sees it."""

from tallymark.backends import Backend, open_backend
from tests.support.services.s3_server import S3Server


class S3Peek:
    """What lies below a prefix of a bucket."""

    def __init__(self, server: S3Server, bucket: str, prefix: str = "") -> None:
        self._server = server
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self.backend: Backend = open_backend(f"s3://{bucket}/{prefix}", options=server.options)

    def objects(self) -> dict[str, bytes]:
        """All that is stored; an upload in parts that was never finished counts as an object."""
        unfinished = {f"unfinished upload of {upload['Key']}": b"" for upload in self._server.uploads(self._bucket)}
        found = self._server.objects(self._bucket, self._prefix)
        return {key.removeprefix(self._prefix): data for key, data in found.items()} | unfinished

    def directories(self) -> list[str]:
        return []
