"""A bucket of the model of GCS, as plain HTTP shows it."""

from tallymark.backends import Backend, open_backend
from tests.support.services.gcs_facade import GcsFacade


class GcsPeek:
    """What lies below a prefix of a bucket."""

    def __init__(self, facade: GcsFacade, bucket: str, prefix: str = "") -> None:
        self._facade = facade
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self.backend: Backend = open_backend(f"gs://{bucket}/{prefix}", options=facade.options)

    def objects(self) -> dict[str, bytes]:
        """All that is stored; an upload in parts that was never finished counts as an object."""
        unfinished = {f"unfinished upload of {key}": b"" for key in self._facade.uploads(self._bucket)}
        found = self._facade.objects(self._bucket, self._prefix)
        return {key.removeprefix(self._prefix): data for key, data in found.items()} | unfinished

    def directories(self) -> list[str]:
        return []
