"""Hudi's own writers on S3, with their markers in a service that is killed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from tallymark.bench.hadoop_aws import CONNECTORS
from tests.spark.hudi.jobs import (
    MARKS,
    Hudi,
    Model,
    Service,
    hudi_writers,
    of_table,
    served,
    settings_of_the_guide,
)
from tests.spark.hudi.storage import Stored, check_a_failed_job_leaves_nothing, write_while_the_service_is_killed
from tests.support.jars import jars
from tests.support.services.s3_server import ENVIRONMENT, REGION, S3Server

pytestmark = MARKS


@pytest.fixture(scope="module")
def hudi(tmp_path_factory: pytest.TempPathFactory, s3: S3Server) -> Iterator[Hudi]:
    s3a = {
        "endpoint": s3.endpoint,
        "endpoint.region": REGION,
        "path.style.access": "true",
        "access.key": ENVIRONMENT["AWS_ACCESS_KEY_ID"],
        "secret.key": ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
    }
    settings = {f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()}
    folder = tmp_path_factory.mktemp("hudi")
    with hudi_writers(folder, more_jars=jars(CONNECTORS["3.3.4"]), **settings) as writers:
        yield writers


@dataclass
class Bucket(Stored):
    """A table in a bucket, below the prefix ``table/``."""

    s3: S3Server
    bucket: str
    empty_folders: ClassVar[str] = rf"\.hoodie/\.temp/|{Stored.empty_folders}"  # objects of S3A

    def names(self, below: str = "") -> list[str]:
        return [key.removeprefix("table/") for key in self.s3.keys(self.bucket, f"table/{below}")]

    def text(self, name: str) -> str:
        try:
            return self.s3.get(self.bucket, f"table/{name}").decode()
        except self.s3.client.exceptions.NoSuchKey as error:
            raise FileNotFoundError(name) from error


@pytest.fixture
def service(s3: S3Server, bucket: str, tmp_path: Path) -> Iterator[Service]:
    storage = [f"endpoint={s3.endpoint}", f"region={REGION}", "path_style=true"]
    options = [word for pair in storage for word in ("--storage", pair)]
    with served(f"s3://{bucket}", *options, secret=tmp_path / "secret") as service:
        yield service


@pytest.mark.parametrize(("version", "metadata"), [("6", "true"), ("9", "false")])
def test_on_s3_the_next_write_deletes_all_files_of_a_job_that_failed_half_way(
    hudi, s3, bucket, service, version, metadata
):
    options = {**settings_of_the_guide(service.port), **of_table(version, metadata)}
    table = Model(hudi, f"s3a://{bucket}/table", options)
    check_a_failed_job_leaves_nothing(table, Bucket(s3, bucket), service)


def test_on_s3_each_file_has_its_marker_and_jobs_live_while_the_service_is_killed(hudi, s3, bucket, service):
    options = {**settings_of_the_guide(service.port), **of_table("9", "false")}
    table = Model(hudi, f"s3a://{bucket}/table", options)
    write_while_the_service_is_killed(table, Bucket(s3, bucket), service, kills=8, pause_s=0)
