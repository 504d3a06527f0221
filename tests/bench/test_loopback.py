import json
import urllib.request

import anyio
import pytest

from tallymark.backends import AlreadyExists, NotFound, StorageOptions, open_backend
from tallymark.bench.loopback import server
from tallymark.bench.loopback.connection import DATA_KEPT_BYTES_MAX, Connection, unchunked
from tallymark.bench.loopback.objects import Objects
from tallymark.bench.loopback.rate import Rate
from tallymark.bench.ours import Ours
from tallymark.bench.places.objects import objects
from tests.support.loops import on_both_loops


@pytest.fixture(scope="module")
def endpoint():
    with server() as url:
        yield url


def options(endpoint):
    return StorageOptions(
        endpoint=endpoint, region="us-east-1", credentials="tallymark.bench.loopback.server:credentials"
    )


@pytest.fixture
def backend(endpoint, request):
    return open_backend(f"s3://bench/{request.node.name}", options=options(endpoint))


@on_both_loops
async def test_what_was_put_is_read_listed_and_deleted(backend):
    await backend.put("a/1 & '2'.txt", b"one")
    await backend.put("a/1 & '2'.txt", b"two")
    assert await backend.get("a/1 & '2'.txt") == b"two"
    assert [await backend.get_range("a/1 & '2'.txt", start, 9) for start in (1, 3)] == [b"wo", b""]
    assert [(entry.path, entry.size) async for entry in backend.list("a")] == [("a/1 & '2'.txt", 3)]
    await backend.delete(["a/1 & '2'.txt"])
    with pytest.raises(NotFound):
        await backend.get("a/1 & '2'.txt")


@on_both_loops
async def test_the_server_tells_what_it_was_asked_for_since_it_was_last_asked(endpoint, backend):
    def seen():
        with urllib.request.urlopen(f"{endpoint}/bench?seen", timeout=30) as answer:
            return json.load(answer)

    seen()
    markers = [f".hoodie/.temp/7/MARKERS{number}" for number in range(3)]
    for name in [*markers, markers[0], "a.parquet"]:
        await backend.put(name, b"x")
    await backend.delete(markers)
    assert seen() == {"requests_put": 5, "requests_delete": 1, "marker_objects": 3}
    assert seen() == {}


@on_both_loops
async def test_data_files_are_forgotten_and_a_log_is_kept(backend):
    body = b"x" * (DATA_KEPT_BYTES_MAX + 1)
    for name in ("month=1/a.parquet", "_delta_log/1.checkpoint.parquet", ".hoodie/1.commit"):
        await backend.put(name, body)
    assert {entry.size async for entry in backend.list("")} == {len(body)}
    assert await backend.get("_delta_log/1.checkpoint.parquet") == body
    assert await backend.get(".hoodie/1.commit") == body
    with pytest.raises(NotFound):
        await backend.get("month=1/a.parquet")


@on_both_loops
async def test_data_files_are_kept_up_to_the_size_that_was_given():
    body = b"x" * (DATA_KEPT_BYTES_MAX + 1)
    with server(data_kept_bytes_max=len(body)) as url:
        backend = open_backend("s3://bench/kept", options=options(url))
        await backend.put("a.parquet", body)
        await backend.put("b.parquet", body + b"x")
        assert await backend.get("a.parquet") == body
        with pytest.raises(NotFound):
            await backend.get("b.parquet")


@on_both_loops
async def test_listing_has_as_many_pages_as_it_takes(backend):
    ours = Ours(backend)
    names = [f"many/{number:05}" for number in range(1001)]
    for name in names:
        await ours.put(name, b"")
    assert [entry.path async for entry in backend.list("many")] == names
    await ours.delete(names)
    assert await ours.list("many") == 0


@on_both_loops
async def test_a_large_file_is_counted_and_its_name_is_taken(backend):
    ours = Ours(backend)
    ours.data_file("data/large", [bytes(400_000)] * 5)
    assert [(entry.path, entry.size) async for entry in backend.list("data")] == [("data/large", 2_000_000)]
    with pytest.raises(AlreadyExists):
        ours.data_file("data/large", [b"other"])
    with pytest.raises(AlreadyExists):
        await backend.put_new("data/large", b"other")


@on_both_loops
async def test_a_measured_prefix_goes_with_all_that_is_in_it_and_nothing_else(backend, endpoint):
    await backend.put("mine", b"stays")
    with pytest.raises(KeyError, match="interrupted"):
        await interrupted(objects(backend.url, options(endpoint), title="S3"))
    assert [entry.path async for entry in backend.list("")] == ["mine"]


async def interrupted(opening):
    async with opening as found:
        await found.ours.put("x/1", b"")
        found.peer.put_new("x/2", b"")
        assert await found.ours.list("x") == found.peer.list("x") == 2
        raise KeyError("interrupted")


@pytest.fixture
def s3(endpoint):
    """Another client than ours, with all that Hadoop's connector asks of a store."""
    boto3 = pytest.importorskip("boto3")
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
    )


def put(s3, *keys, body=b"some bytes"):
    for key in keys:
        s3.put_object(Bucket="bench", Key=key, Body=body)


def test_a_folder_is_listed_with_one_name_for_each_folder_in_it(s3):
    put(s3, "folder/a", "folder/b/1", "folder/b/2", "folder/c/", "folder/d", "folders")
    page = s3.list_objects_v2(Bucket="bench", Prefix="folder/", Delimiter="/")
    assert [entry["Key"] for entry in page["Contents"]] == ["folder/a", "folder/d"]
    assert [entry["Prefix"] for entry in page["CommonPrefixes"]] == ["folder/b/", "folder/c/"]


def test_pages_of_one_leave_nothing_out_and_say_nothing_twice(s3):
    put(s3, "pages/a", "pages/b/1", "pages/b/2", "pages/c")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="bench", Prefix="pages/", Delimiter="/", MaxKeys=1)
    found = [
        entry.get("Key") or entry["Prefix"]
        for page in pages
        for entry in (*page.get("Contents", ()), *page.get("CommonPrefixes", ()))
    ]
    assert found == ["pages/a", "pages/b/", "pages/c"]


def test_a_part_of_an_object_is_read(s3):
    put(s3, "range", body=b"0123456789")
    assert s3.get_object(Bucket="bench", Key="range", Range="bytes=2-4")["Body"].read() == b"234"
    assert s3.get_object(Bucket="bench", Key="range", Range="bytes=8-")["Body"].read() == b"89"
    assert s3.head_object(Bucket="bench", Key="range")["ContentLength"] == 10


def test_a_copy_has_the_bytes_and_the_metadata_of_its_source(s3):
    s3.put_object(Bucket="bench", Key="from & to", Body=b"bytes", Metadata={"colour": "red"})
    s3.copy_object(Bucket="bench", Key="copy", CopySource={"Bucket": "bench", "Key": "from & to"})
    found = s3.get_object(Bucket="bench", Key="copy")
    assert (found["Body"].read(), found["Metadata"]) == (b"bytes", {"colour": "red"})


def test_an_upload_in_parts_is_an_object_once_it_is_completed_and_not_before(s3):
    upload = s3.create_multipart_upload(Bucket="bench", Key="parts")["UploadId"]
    parts = []
    for number in (2, 10):
        body = bytes([number]) * 100
        tag = s3.upload_part(Bucket="bench", Key="parts", UploadId=upload, PartNumber=number, Body=body)["ETag"]
        parts.append({"PartNumber": number, "ETag": tag})
    assert [found["Key"] for found in s3.list_multipart_uploads(Bucket="bench")["Uploads"]] == ["parts"]
    assert "Contents" not in s3.list_objects_v2(Bucket="bench", Prefix="parts")
    s3.complete_multipart_upload(Bucket="bench", Key="parts", UploadId=upload, MultipartUpload={"Parts": parts})
    assert s3.get_object(Bucket="bench", Key="parts")["Body"].read() == bytes([2]) * 100 + bytes([10]) * 100
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="bench")


def test_an_upload_that_is_aborted_leaves_nothing(s3):
    upload = s3.create_multipart_upload(Bucket="bench", Key="aborted")["UploadId"]
    s3.abort_multipart_upload(Bucket="bench", Key="aborted", UploadId=upload)
    with pytest.raises(s3.exceptions.NoSuchUpload):
        s3.abort_multipart_upload(Bucket="bench", Key="aborted", UploadId=upload)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="bench")


def test_bytes_that_come_in_signed_pieces_are_put_together():
    body = b"5;chunk-signature=abc\r\nhello\r\n1\r\n!\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n"
    assert unchunked(body) == b"hello!"


class Wire:
    """A transport, and a loop's clock, that keep what they are given."""

    def __init__(self) -> None:
        self.log: list[tuple[float, bytes]] = []

    def write(self, data: bytes) -> None:
        self.log.append((0.0, data))

    def call_later(self, delay_s: float, _write: object, data: bytes) -> None:
        self.log.append((delay_s, data))


def test_each_answer_waits_for_the_latency_and_a_client_that_asks_first_is_told_to_go_on(monkeypatch):
    wire = Wire()
    monkeypatch.setattr("asyncio.get_running_loop", lambda: wire)
    connection = Connection(Objects(), latency_s=0.03)
    monkeypatch.setattr(connection, "_transport", wire, raising=False)
    request = b"PUT /bench/a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    connection.get_buffer(-1)[: len(request)] = request
    connection.buffer_updated(len(request))
    connection.get_buffer(-1)[:2] = b"ok"
    connection.buffer_updated(2)
    (at_once, go_on), (waited, answer) = wire.log
    assert (at_once, go_on) == (0.0, b"HTTP/1.1 100 Continue\r\n\r\n")
    assert waited == 0.03
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


@on_both_loops
async def test_a_server_has_those_objects_from_the_beginning_that_it_is_told_to_hold(tmp_path):
    (tmp_path / "names").write_text("a/2\na/1\nb/3\n")
    with server(held=tmp_path / "names") as endpoint:
        backend = open_backend("s3://bench/a", options=options(endpoint))
        assert [(entry.path, entry.size) async for entry in backend.list("")] == [("1", 0), ("2", 0)]
        await backend.put_new("3", b"another")
        assert [entry.path async for entry in backend.list("")] == ["1", "2", "3"]


def test_what_comes_faster_than_it_may_waits_for_its_turn_and_a_pause_is_not_saved_up():
    rate = Rate(per_s=100)
    assert [rate.wait_s(1, now=5.0) for _ in range(3)] == pytest.approx([0.01, 0.02, 0.03])
    assert rate.wait_s(0, now=5.0) == 0
    assert rate.wait_s(50, now=6.0) == pytest.approx(0.5)
    assert Rate(per_s=0).wait_s(1000, now=5.0) == 0


@on_both_loops
async def test_each_object_of_a_bulk_delete_counts_and_readers_do_not_wait(endpoint):
    with server(puts_per_s=100) as slow:
        backend = open_backend("s3://bench/rate", options=options(slow))
        names = [f"many/{number}" for number in range(20)]
        for name in names:
            await backend.put(name, b"")
        began = anyio.current_time()
        await backend.get(names[0])
        read_s = anyio.current_time() - began
        await backend.delete(names)
        assert anyio.current_time() - began - read_s > 0.2
