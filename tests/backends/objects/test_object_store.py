"""Which requests the verbs of an object store make, and how they are counted."""

from contextlib import aclosing

import anyio
import pytest

from tallymark.backends import NotFound, NotPermitted
from tallymark.backends.meter import RequestMeter
from tallymark.backends.object_client import PUT_BYTES_MAX, SMALL_BYTES, ObjectClient, Timeouts
from tallymark.backends.testing import listed
from tests.support.loops import on_both_loops
from tests.support.s3_clients import ONCE, s3_backend
from tests.support.services.scripted_http import Say, refusal, scripted_server

pytestmark = pytest.mark.usefixtures("s3_keys")


def counts(backend):
    return {found.request_class: dict(found.outcomes) for found in backend.statistics().classes}


def page(keys, *, folders=(), is_truncated=False):
    entries = "".join(
        f"<Contents><Key>{key}</Key><Size>3</Size><LastModified>2025-11-21T08:00:00.500Z</LastModified></Contents>"
        for key in keys
    )
    entries += "".join(f"<CommonPrefixes><Prefix>{folder}/</Prefix></CommonPrefixes>" for folder in folders)
    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>" if is_truncated else ""
    return Say(
        200, f"<ListBucketResult>{more or '<IsTruncated>false</IsTruncated>'}{entries}</ListBucketResult>".encode()
    )


RANGE = Say(206, b"3456", {**Say().headers, "Content-Range": "bytes 3-6/10"})


@pytest.fixture
def server():
    with scripted_server() as server:
        yield server


@pytest.fixture
def backend(server):
    return s3_backend(server.endpoint, "lake", prefix="t", retry=ONCE)


@on_both_loops
async def test_each_verb_is_one_request_that_is_counted_with_its_bytes(server, backend):
    server.say(Say(200, b"1234567"))
    await backend.get("a")
    server.say(RANGE)
    assert await backend.get_range("a", 3, 4) == b"3456"
    assert server.asked[0].headers["range"] == "bytes=3-6"
    server.say(Say())
    await backend.put("a", b"12345")
    await backend.put_new("a", b"12345")
    assert server.verbs == ["PUT", "PUT"]
    server.say(Say(200, b"<DeleteResult><Deleted><Key>t/a</Key></Deleted></DeleteResult>"))
    await backend.delete(["a"])
    server.say(page(["t/m/1"]))
    await listed(backend, "m")
    assert counts(backend) == {
        "get": {"ok": 1},
        "get_range": {"ok": 1},
        "put": {"ok": 2},
        "delete": {"ok": 1},
        "list": {"ok": 1},
    }
    statistics = backend.statistics()
    assert (statistics.sent_bytes, statistics.received_bytes) == (10, 7 + 4)


@on_both_loops
async def test_a_range_beyond_the_end_is_no_byte_and_no_error(server, backend):
    for answer in (Say(416), refusal(416, "InvalidRange")):
        server.say(answer)
        assert await backend.get_range("a", 10, 4) == b""
    assert counts(backend) == {"get_range": {"ok": 2}}
    server.say(refusal(404, "NoSuchKey"))
    with pytest.raises(NotFound):
        await backend.get_range("status code: 416 ", 10, 4)


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        (Say(200, b"0123456789"), b"0123456789"),
        (Say(200), b""),
        (Say(206, headers={**RANGE.headers, "Content-Range": "bytes */0"}), b""),  # Ceph's gateway
        (Say(206, headers={**RANGE.headers, "Content-Range": "bytes 0-0/0"}), b""),
        (Say(206), b""),
    ],
)
@on_both_loops
async def test_where_the_store_gives_no_range_the_whole_is_read(server, backend, answer, whole):
    server.say(answer, Say(200, whole))
    assert await backend.get_range("a", 3, 4) == whole[3:7]
    assert counts(backend) == {"get": {"ok": 1}, "get_range": {"ok": 1}}


@on_both_loops
async def test_reading_back_a_put_is_counted(server, backend):
    server.say(refusal(412, "PreconditionFailed"), Say())
    with pytest.raises(FileExistsError):
        await backend.put_new("a", b"")
    assert server.verbs == ["PUT", "HEAD"]
    assert counts(backend) == {"put": {"exists": 1}, "head": {"ok": 1}}


@on_both_loops
async def test_a_listing_asks_for_a_page_at_a_time_and_counts_each(server, backend):
    keys = [f"t/m/{number:04}" for number in range(2500)]
    server.say(
        *(page(keys[start:end], is_truncated=end < 2500) for start, end in ((0, 1000), (1000, 2000), (2000, 2500)))
    )
    found = [entry async for entry in backend.list("m")]
    assert [f"t/{entry.path}" for entry in found] == keys
    assert (found[0].size, found[0].modified % 1) == (3, 0.5)
    assert [asked.target.partition("start-after=")[2] for asked in server.asked] == ["", keys[999], keys[1999]]
    assert counts(backend) == {"list": {"ok": 3}}


@on_both_loops
async def test_a_listing_that_is_left_asks_for_no_more(server, backend):
    server.say(page([f"t/m/{number:04}" for number in range(1000)], is_truncated=True))
    async with aclosing(backend.list("m")) as entries:
        async for entry in entries:
            if entry.path.endswith("0999"):
                break
    assert len(server.asked) == 1


@on_both_loops
async def test_a_listing_can_begin_in_the_middle(server, backend):
    server.say(page(["t/m/5", "t/m/6"]))
    assert [entry.path async for entry in backend.list_after("m", "m/4")] == ["m/5", "m/6"]
    assert "start-after=t/m/4" in server.asked[0].target


@on_both_loops
async def test_folders_are_one_request_for_a_thousand_of_what_is_directly_below(server, backend):
    server.say(page(["t/m/file"], folders=["t/m/a", "t/m/b"]))
    assert await backend.folders("m") == ["a", "b"]
    assert "delimiter=/" in server.asked[0].target
    assert counts(backend) == {"list": {"ok": 1}}
    names = [f"{number:04}" for number in range(1500)]
    server.say(
        page([], folders=[f"t/{name}" for name in names[:1000]], is_truncated=True),
        page(["t/file"], folders=[f"t/{name}" for name in names[1000:]]),
    )
    assert await backend.folders("") == names
    assert counts(backend) == {"list": {"ok": 1 + 2}}


@on_both_loops
async def test_a_delete_of_many_asks_once_for_each_thousand(server, backend):
    server.say(Say(200, b"<DeleteResult><Deleted><Key>t/a</Key></Deleted></DeleteResult>"))
    await backend.delete([f"m/{number}" for number in range(2500)])
    assert sorted(asked.body.count(b"<Object>") for asked in server.asked) == [500, 1000, 1000]


@on_both_loops
async def test_nothing_is_deleted_where_one_path_of_many_is_none(server, backend):
    with pytest.raises(ValueError, match="absolute"):
        await backend.delete([*(f"m/{number}" for number in range(1500)), "/etc/passwd"])
    assert server.asked == []


@on_both_loops
async def test_a_get_of_an_absent_object_is_counted_as_such(server, backend):
    server.say(refusal(404, "NoSuchKey"))
    with pytest.raises(NotFound):
        await backend.get("a")
    assert counts(backend) == {"get": {"not_found": 1}}


@on_both_loops
async def test_calls_beyond_the_limit_wait_and_do_not_fail(server):
    backend = s3_backend(server.endpoint, "lake", request_count_max=2)
    server.say(Say(wait_s=0.02))
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(backend.put, f"m/{number}", b"")
    assert len(server.asked) == 8


@pytest.mark.parametrize(
    ("size", "bound"),
    [(0, 0), (SMALL_BYTES, 0), (SMALL_BYTES + 1, 1 << 17), (1 << 20, 1 << 20), ((1 << 20) + 1, 1 << 21)],
)
def test_a_put_may_take_longer_the_larger_it_is(size, bound):
    timeouts = Timeouts(request_s=10, bytes_per_s_min=1 << 19)
    assert timeouts.of(size) == (bound, 10 + bound / (1 << 19))


def test_puts_of_like_size_share_one_of_the_vendors_clients_and_all_small_requests_do():
    made = []

    def make(timeout_s):
        made.append(timeout_s)
        raise NotPermitted("no store")

    timeouts = Timeouts(request_s=10, bytes_per_s_min=1 << 20)
    client = ObjectClient("s3://lake", "", make, timeouts=timeouts, meter=RequestMeter(), rights={})
    for size in (0, 10, 60_000, 2**20, 2**20 + 1, 2**21):
        with pytest.raises(NotPermitted):
            client.put("a", b"x" * size)
    assert made == [10, 10, 10, 11, 12, 12]


def test_more_than_one_put_takes_is_refused_before_it_is_sent(server, backend):
    class Huge(bytes):
        def __len__(self) -> int:
            return PUT_BYTES_MAX + 1

    with pytest.raises(NotPermitted, match="more than one put takes"):
        backend._client.put("a", Huge())
    assert server.asked == []


def test_a_data_file_is_sent_by_one_request_from_a_spool_on_disk(server):
    backend = s3_backend(server.endpoint, "lake", spool_memory_bytes=100)
    server.say(Say())
    file = backend.new_file("p=1/a", staging="")
    file.sink.write(b"rows" * 1000)
    file.publish()
    assert [(asked.method, asked.target, asked.body) for asked in server.asked] == [
        ("PUT", "/lake/p=1/a", b"rows" * 1000)
    ]
    assert server.asked[0].headers["if-none-match"] == "*"
    assert len(server.asked[0].headers["x-amz-meta-tallymark-nonce"]) == 32
