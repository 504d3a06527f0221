"""The doctor on an S3 server that keeps the contract."""

import pytest

from tallymark.backends.doctor import examine
from tests.cli.scene import run, run_json
from tests.support.services.s3_server import REGION, S3Server

pytestmark = pytest.mark.slow


def where(s3: S3Server) -> list[str]:
    return [f"--storage=endpoint={s3.endpoint}", f"--storage=region={REGION}"]


def test_an_s3_server_that_keeps_the_contract_is_fit_and_holds_what_it_held(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(examine, "REMOVAL_S_MAX", 100.0)
    s3.client.put_object(Bucket=bucket, Key="flights/of-somebody", Body=b"1")
    found = run_json("doctor", f"s3://{bucket}/flights", *where(s3), "--seconds=200")
    assert found["verdict"] == "fit: every promise that was tried was kept"
    assert [latency["verb"] for latency in found["latencies"]] == ["put_new", "put", "get", "list", "delete"]
    assert (found["ground"], found["left"]) == (None, [])
    assert s3.keys(bucket) == ["flights/of-somebody"]
    assert s3.uploads(bucket) == []


def test_a_bucket_that_is_not_there_is_named(s3: S3Server):
    result = run("doctor", "s3://nobodys/flights", *where(s3))
    assert result.exit_code == 1
    assert "s3://nobodys/flights is not fit: gives back what it was given: " in result.stdout
