"""Where a test's table lies, in whichever store, and a look at all of it around the library."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tallymark.backends import Backend, StorageOptions, open_backend
from tests.support.services.gcs_facade import GcsFacade
from tests.support.services.s3_server import REGION, S3Server

if TYPE_CHECKING:
    from tests.support.services.minidfs import MiniDfs  # imports py4j


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    url: str
    objects: Callable[[], dict[str, bytes]]
    """Every object of the table, path to bytes."""
    options: StorageOptions = field(default_factory=StorageOptions)
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    """Hadoop's settings by which Spark reaches it, without ``spark.hadoop.``."""

    @property
    def native_url(self) -> str:
        """As Spark's own readers take it."""
        return self.url.replace("s3:", "s3a:", 1)

    def backend(self) -> Backend:
        return open_backend(self.url, options=self.options)

    def data_files(self) -> set[str]:
        """Every Parquet file that is there."""
        return {path for path in self.objects() if path.endswith(".parquet")}


def place_on(store: str, request: pytest.FixtureRequest) -> Place:
    """A new place, on a server that tests share and that is started when it is first needed."""
    match store:
        case "s3":
            return _on_s3(request.getfixturevalue("s3"), request.getfixturevalue("bucket"))
        case "gcs":
            return _on_gcs(request.getfixturevalue("gcs"))
        case "hdfs":
            return _on_hdfs(request.getfixturevalue("dfs"))
    raise LookupError(store)


def _on_s3(server: S3Server, bucket: str) -> Place:
    beginning = f"fs.s3a.bucket.{bucket}"
    return Place(
        url=f"s3://{bucket}/lake/table",
        objects=lambda: _below("lake/table/", server.objects(bucket, "lake/table/")),
        options=server.options,
        spark_conf={
            f"{beginning}.endpoint": server.endpoint,
            f"{beginning}.endpoint.region": REGION,
            f"{beginning}.path.style.access": "true",
        },
    )


def _on_gcs(facade: GcsFacade) -> Place:
    bucket = facade.bucket()
    return Place(
        url=f"gs://{bucket}/lake/table",
        objects=lambda: _below("lake/table/", facade.objects(bucket, "lake/table/")),
        options=facade.options,
    )


def _on_hdfs(cluster: "MiniDfs") -> Place:
    folder = f"/tests/{secrets.token_hex(6)}/table"
    return Place(url=f"{cluster.url}{folder}", objects=lambda: cluster.objects(folder))


def _below(prefix: str, objects: Mapping[str, bytes]) -> dict[str, bytes]:
    return {key.removeprefix(prefix): data for key, data in objects.items()}
