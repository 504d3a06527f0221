"""The model of GCS answers obstore as Google's reference says that GCS does."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import Any

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, PreconditionError, UnauthenticatedError
from obstore.store import GCSStore

from tests.support.services.gcs_facade import GcsFacade, credentials
from tests.support.services.gcs_model import EXPIRED, ONE_WRITE_A_SECOND, PAGE_KEYS_MAX, READ_ONLY, GcsModel
from tests.support.services.http_message import Request


@pytest.fixture
def bucket(gcs: GcsFacade) -> Iterator[str]:
    name = gcs.bucket()
    yield name
    gcs.drop(name)


@pytest.fixture
def store(gcs: GcsFacade, bucket: str) -> Any:
    return _store(gcs, bucket, credentials)


def _store(gcs: GcsFacade, bucket: str, provider: Any) -> Any:
    return GCSStore(
        bucket,
        config={"base_url": gcs.endpoint},
        credential_provider=provider,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )


def test_what_is_put_is_got_with_its_attributes_and_generation(store, gcs, bucket):
    put = obstore.put(store, "a é%/b=1+2", b"rows", attributes={"tallymark-nonce": "mine"})
    got = obstore.get(store, "a é%/b=1+2")
    assert bytes(got.bytes()) == b"rows"
    assert got.attributes["tallymark-nonce"] == "mine"
    assert (got.meta["version"], got.meta["e_tag"]) == (put["version"], put["e_tag"])
    assert obstore.head(store, "a é%/b=1+2")["size"] == 4
    assert gcs.objects(bucket) == {"a é%/b=1+2": b"rows"}
    assert bytes(obstore.get_range(store, "a é%/b=1+2", start=1, end=3)) == b"ow"


def test_what_is_absent_is_not_found(store):
    for ask in (obstore.get, obstore.head, obstore.delete):
        with pytest.raises(FileNotFoundError):
            ask(store, "a")


def test_of_writers_that_race_to_create_a_key_exactly_one_wins(store, gcs, bucket):
    def create(writer: int) -> list[str]:
        won = []
        for number in range(20):
            try:
                obstore.put(store, f"{number:02}", b"%d" % writer, mode="create")
            except AlreadyExistsError:
                continue
            won.append(f"{number:02}")
        return won

    with ThreadPoolExecutor(16) as writers:
        won = list(writers.map(create, range(16)))
    assert gcs.objects(bucket) == {key: b"%d" % writer for writer, keys in enumerate(won) for key in keys}
    assert sorted(key for keys in won for key in keys) == [f"{number:02}" for number in range(20)]


def test_an_object_is_replaced_only_in_the_generation_that_was_named(store, gcs, bucket):
    first = obstore.put(store, "a", b"1")
    obstore.put(store, "a", b"2", mode={"version": first["version"]})
    with pytest.raises(PreconditionError):
        obstore.put(store, "a", b"3", mode={"version": first["version"]})
    assert gcs.objects(bucket) == {"a": b"2"}


def test_a_listing_goes_on_over_pages_from_where_it_is_told_in_order_of_bytes(store, gcs, bucket):
    keys = sorted([f"d/{number:05}" for number in range(PAGE_KEYS_MAX + 200)] + ["d/\U0001f600", "d/￮"], key=str.encode)
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda key: obstore.put(store, key, b""), keys))
    obstore.put(store, "e", b"")
    assert [entry["path"] for entry in obstore.list(store, "d").collect()] == keys == gcs.keys(bucket, "d/")
    assert [entry["path"] for entry in obstore.list(store, "d", offset=keys[700]).collect()] == keys[701:]
    found = obstore.list_with_delimiter(store)
    assert (found["common_prefixes"], [entry["path"] for entry in found["objects"]]) == (["d"], ["e"])


def test_copies_keep_attributes_and_can_be_exclusive(store, gcs, bucket):
    obstore.put(store, "a é", b"rows", attributes={"tallymark-nonce": "mine"})
    obstore.copy(store, "a é", "b")
    with pytest.raises(AlreadyExistsError):
        obstore.copy(store, "a é", "b", overwrite=False)
    assert obstore.get(store, "b").attributes["tallymark-nonce"] == "mine"
    assert gcs.objects(bucket) == {"a é": b"rows", "b": b"rows"}


def test_an_upload_in_parts_is_there_when_it_is_complete(store, gcs, bucket):
    data = b"0123456789" * 1_200_000
    obstore.put(store, "a", data, use_multipart=True, chunk_size=5 * 1024 * 1024)
    assert gcs.objects(bucket) == {"a": data}
    assert gcs.uploads(bucket) == []


def test_tokens_that_are_expired_or_may_not_write_are_refused(gcs, bucket):
    def refused(token: str) -> type[BaseException]:
        expires = datetime.now(UTC) + timedelta(hours=1)
        with pytest.raises(Exception) as caught:
            obstore.put(_store(gcs, bucket, lambda: {"token": token, "expires_at": expires}), "a", b"")
        return caught.type

    assert (refused(EXPIRED), refused(READ_ONLY)) == (UnauthenticatedError, obstore.exceptions.PermissionDeniedError)
    assert gcs.keys(bucket) == []


def test_an_object_is_written_once_a_second_where_the_rule_holds():
    moments = iter(datetime(2026, 11, 21, tzinfo=UTC) + timedelta(seconds=second) for second in (0, 0.9, 0.95, 1.9, 3))
    model = GcsModel(now=lambda: next(moments))

    def put(key: str, **headers: str) -> int:
        return model.answer(Request("PUT", f"/b/{key}", {"authorization": "Bearer t", **headers}, b"")).status

    model.answer(Request("PUT", "/b", {"authorization": "Bearer t", ONE_WRITE_A_SECOND: "yes"}, b""))
    assert [put("a"), put("a"), put("b"), put("a"), put("a")] == [200, 429, 200, 200, 200]
    assert put("a", **{"x-goog-if-generation-match": "0"}) == 412


def test_who_gives_no_token_is_refused(gcs, bucket):
    line = HTTPConnection(gcs.endpoint.removeprefix("http://"))
    line.request("GET", f"/{bucket}?list-type=2")
    assert line.getresponse().status == 403
    line.close()
