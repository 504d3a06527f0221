"""Google Cloud Storage through obstore's XML API: ``gs://bucket/prefix``.

Owns: how bucket, endpoint and credentials are passed to the vendor's library. Without a provider named, credentials are
Google's application-default ones: the file that ``GOOGLE_APPLICATION_CREDENTIALS`` names, what ``gcloud auth
application-default login`` has left, or the machine's service account; ``GOOGLE_SERVICE_ACCOUNT`` goes before them.

A put-if-absent requires generation 0, which is that of no object. GCS takes one write a second of one object, and
answers more with 429: Throttled, for which ``retry`` pauses longer. Nothing here writes one object so often, but two
writers can meet.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tallymark.backends.credentials import named_provider
from tallymark.backends.errors import InvalidPath, NotPermitted
from tallymark.backends.meter import RequestMeter
from tallymark.backends.object_client import ObjectClient, Timeouts
from tallymark.backends.object_errors import Verb
from tallymark.backends.object_store import ObjectStoreBackend
from tallymark.backends.options import StorageOptions
from tallymark.backends.retry import Retries
from tallymark.backends.s3 import check_endpoint, client_options, provider_timeout_s

if TYPE_CHECKING:
    from obstore.store import ObjectStore

RIGHTS: Mapping[Verb, str] = {
    "get": "storage.objects.get, and storage.objects.list, without which GCS hides that an object is absent,",
    "head": "storage.objects.get, and storage.objects.list, without which GCS hides that an object is absent,",
    "put": "storage.objects.create, and storage.objects.delete to replace,",
    "put_new": "storage.objects.create",
    "list": "storage.objects.list",
    "delete": "storage.objects.delete",
}

NEEDS = ("token",)

_ENDPOINT_VARIABLE = "GOOGLE_BASE_URL"


class GcsBackend(ObjectStoreBackend):
    """Objects below a prefix of a bucket."""

    def __init__(
        self, bucket: str, prefix: str, options: StorageOptions, retries: Retries, meter: RequestMeter
    ) -> None:
        make = GcsStores(bucket, options).make
        url = f"gs://{bucket}/{prefix}".removesuffix("/")
        client = ObjectClient(url, prefix, make, timeouts=Timeouts.from_options(options), meter=meter, rights=RIGHTS)
        super().__init__(client, retries, options, delete_count=1)


class GcsStores:
    """Makes the vendor's stores for one bucket; they differ in their timeouts."""

    def __init__(self, bucket: str, options: StorageOptions) -> None:
        for name in ("profile", "region", "path_style"):
            if getattr(options, name) is not None:
                raise InvalidPath(f"option {name} is S3's, and the URL is gs://{bucket}; leave it out")
        self._bucket = bucket
        self._options = options
        self._endpoint = check_endpoint(options.endpoint or os.environ.get(_ENDPOINT_VARIABLE))

    def make(self, timeout_s: float) -> "ObjectStore":
        """Return a store whose requests take this long at most, and are sent once."""
        from obstore.exceptions import BaseError
        from obstore.store import GCSStore

        try:
            return GCSStore(
                config=self._config(),  # type: ignore[arg-type]
                client_options=client_options(self._options, timeout_s, endpoint=self._endpoint),  # type: ignore[arg-type]
                retry_config={"max_retries": 0},
                credential_provider=self._provider(),
            )
        except (BaseError, ValueError):  # its text may repeat a part of the key
            raise NotPermitted(
                f"gs://{self._bucket}: no credentials can be made of what GOOGLE_SERVICE_ACCOUNT or "
                "GOOGLE_APPLICATION_CREDENTIALS names, or of the options: check that it is a key of a service account"
            ) from None

    def _config(self) -> dict[str, Any]:
        config = {"bucket": self._bucket}
        return config if self._endpoint is None else {**config, "base_url": self._endpoint}

    def _provider(self) -> Any:
        if self._options.credentials is None:
            return None
        return named_provider(self._options.credentials, needs=NEEDS, timeout_s=provider_timeout_s(self._options))
