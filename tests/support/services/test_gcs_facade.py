"""Rules of GCS that the model keeps and that no test of the backend needs; what the backend uses, conformance shows."""

from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import Any

import obstore
import pytest
from obstore.exceptions import PermissionDeniedError, PreconditionError, UnauthenticatedError
from obstore.store import GCSStore

from tests.support.services.gcs_facade import GcsFacade
from tests.support.services.gcs_model import EXPIRED, ONE_WRITE_A_SECOND, READ_ONLY, GcsModel
from tests.support.services.http_message import Request


def store(gcs: GcsFacade, bucket: str, token: str = "tests") -> GCSStore:
    provider: Any = lambda: {"token": token, "expires_at": datetime.now(UTC) + timedelta(hours=1)}  # noqa: E731
    return GCSStore(
        bucket,
        config={"base_url": gcs.endpoint},
        credential_provider=provider,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )


def test_an_object_is_replaced_only_in_the_generation_that_was_named(gcs: GcsFacade) -> None:
    bucket = gcs.bucket()
    first = obstore.put(store(gcs, bucket), "a", b"1")
    obstore.put(store(gcs, bucket), "a", b"2", mode={"version": first["version"]})
    with pytest.raises(PreconditionError):
        obstore.put(store(gcs, bucket), "a", b"3", mode={"version": first["version"]})
    assert gcs.objects(bucket) == {"a": b"2"}


@pytest.mark.parametrize(
    ("token", "error"), [(EXPIRED, UnauthenticatedError), (READ_ONLY, PermissionDeniedError)], ids=["expired", "reader"]
)
def test_tokens_that_are_expired_or_may_not_write_are_refused(gcs, token, error) -> None:
    bucket = gcs.bucket()
    with pytest.raises(error):
        obstore.put(store(gcs, bucket, token), "a", b"")
    assert gcs.keys(bucket) == []


def test_an_object_is_written_once_a_second_where_the_rule_holds() -> None:
    moments = iter(datetime(2026, 11, 21, tzinfo=UTC) + timedelta(seconds=second) for second in (0, 0.9, 0.95, 1.9, 3))
    model = GcsModel(now=lambda: next(moments))

    def put(key: str, **headers: str) -> int:
        return model.answer(Request("PUT", f"/b/{key}", {"authorization": "Bearer t", **headers}, b"")).status

    model.answer(Request("PUT", "/b", {"authorization": "Bearer t", ONE_WRITE_A_SECOND: "yes"}, b""))
    assert [put("a"), put("a"), put("b"), put("a"), put("a")] == [200, 429, 200, 200, 200]
    assert put("a", **{"x-goog-if-generation-match": "0"}) == 412


def test_a_request_without_a_token_is_refused(gcs: GcsFacade) -> None:
    line = HTTPConnection(gcs.endpoint.removeprefix("http://"))
    line.request("GET", f"/{gcs.bucket()}?list-type=2")
    assert line.getresponse().status == 403
    line.close()
