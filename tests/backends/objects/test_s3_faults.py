"""What may be repeated is repeated on S3, through lost, late and wrong answers; what is refused is clear at once."""

import anyio
import pytest

from tallymark.backends import BackendError, NotPermitted, StorageOptions, Throttled, Unavailable
from tallymark.backends.retry import RetrySettings
from tallymark.backends.testing import listed
from tests.backends.objects.test_object_store import page
from tests.support.loops import on_both_loops
from tests.support.s3_clients import patience_s, retrying_s3
from tests.support.services.fault_plan import Fault, Kind
from tests.support.services.fault_proxy import fault_proxy
from tests.support.services.scripted_http import Say, refusal, scripted_server

pytestmark = pytest.mark.usefixtures("s3_keys")

LATE_S = 2.0
FAULTS = {
    "reset before": Fault(Kind.RESET_BEFORE),
    "reset after": Fault(Kind.RESET_AFTER),
    "500 before": Fault(Kind.STATUS_BEFORE, 500),
    "500 after": Fault(Kind.STATUS_AFTER, 500),
    "503 before": Fault(Kind.STATUS_BEFORE, 503),
    "429 before": Fault(Kind.STATUS_BEFORE, 429),
    "timeout": Fault(Kind.DELAY, delay_s=LATE_S),
    "torn": Fault(Kind.TORN),
}
through_each_fault = pytest.mark.parametrize("name", FAULTS)

ASKS = {
    "get": lambda backend: backend.get("t/a"),
    "get_range": lambda backend: backend.get_range("t/a", 0, 1),
    "put": lambda backend: backend.put("t/a", b""),
    "put_new": lambda backend: backend.put_new("t/a", b""),
    "list": lambda backend: listed(backend, "t"),
    "delete": lambda backend: backend.delete(["t/a", "t/b"]),
}


@pytest.fixture
def proxy(s3):
    with fault_proxy(s3.endpoint) as proxy:
        yield proxy


@pytest.fixture
def backend(request, proxy, bucket):
    return retrying_s3(proxy.endpoint, bucket, request_timeout_s=patience_s(request, late_s=LATE_S))


@through_each_fault
@on_both_loops
async def test_get_gives_the_bytes_through_any_fault(s3, bucket, proxy, backend, name):
    s3.client.put_object(Bucket=bucket, Key="a", Body=b"bytes" * 1000)
    fault = proxy.script(FAULTS[name], method="GET")
    assert await backend.get("a") == b"bytes" * 1000
    assert fault.happened == 1
    fault = proxy.script(FAULTS[name], method="GET")
    assert await backend.get_range("a", 1, 4) == b"ytes"
    assert fault.happened == 1


@through_each_fault
@on_both_loops
async def test_put_replaces_through_any_fault(s3, bucket, proxy, backend, name):
    s3.client.put_object(Bucket=bucket, Key="beat", Body=b"old")
    fault = proxy.script(FAULTS[name], method="PUT")
    await backend.put("beat", b"new")
    assert fault.happened == 1
    assert s3.objects(bucket) == {"beat": b"new"}


@through_each_fault
@on_both_loops
async def test_list_shows_each_object_once_through_any_fault(s3, bucket, proxy, backend, name):
    for number in range(5):
        s3.client.put_object(Bucket=bucket, Key=f"m/{number}", Body=b"")
    fault = proxy.script(FAULTS[name], method="GET", path="list-type")
    assert await listed(backend, "m") == [f"m/{number}" for number in range(5)]
    assert fault.happened == 1


@through_each_fault
@on_both_loops
async def test_delete_removes_all_through_any_fault(s3, bucket, proxy, backend, name):
    for key in ("a", "b", "keep"):
        s3.client.put_object(Bucket=bucket, Key=key, Body=b"")
    fault = proxy.script(FAULTS[name], method="POST")
    await backend.delete(["a", "b", "absent"])
    assert fault.happened == 1
    assert s3.keys(bucket) == ["keep"]


@pytest.mark.parametrize("verb", ASKS)
@on_both_loops
async def test_a_store_that_throttles_to_the_end_is_told_as_such(verb):
    with scripted_server() as server:
        backend = retrying_s3(server.endpoint, "lake", RetrySettings(attempt_count=3, throttled_pause_s=0))
        server.answer = lambda asked: Say(404) if asked.method == "HEAD" else refusal(503, "SlowDown")
        with pytest.raises(Throttled, match=r"SlowDown.*3 times"):
            await ASKS[verb](backend)
        assert len([asked for asked in server.asked if asked.method != "HEAD"]) == 3


@pytest.mark.parametrize("verb", ASKS)
@on_both_loops
async def test_a_silent_server_is_an_error_within_the_bound_and_not_silence(verb):
    with scripted_server() as server:
        retry = RetrySettings(timeout_s=0.5, attempt_timeout_s=0.2, pause_s=0)
        backend = retrying_s3(server.endpoint, "lake", retry, request_timeout_s=0.2)
        server.say(Say(wait_s=30))
        begun = anyio.current_time()
        with pytest.raises(Unavailable, match=r"s3://lake.*no answer"):
            await ASKS[verb](backend)
        assert anyio.current_time() - begun < StorageOptions().request_timeout_s


REFUSALS = {
    "no list permission": (refusal(403, "AccessDenied"), {"list"}, "s3:ListBucket"),
    "no delete permission": (refusal(403, "AccessDenied"), {"delete"}, "s3:DeleteObject"),
    "read-only": (refusal(403, "AccessDenied"), {"put", "put_new"}, "s3:PutObject"),
    "expired token": (refusal(400, "ExpiredToken"), set(ASKS), "have expired"),
    "bad key": (refusal(403, "InvalidAccessKeyId"), set(ASKS), "which credentials"),
    "wrong secret": (refusal(403, "SignatureDoesNotMatch"), set(ASKS), "which credentials"),
    "wrong bucket": (refusal(404, "NoSuchBucket"), set(ASKS), "bucket's name"),
    "wrong region": (refusal(400, "AuthorizationHeaderMalformed"), set(ASKS), "StorageOptions.region"),
    "another region": (refusal(301, "PermanentRedirect"), set(ASKS), "StorageOptions.region"),
    "clock": (refusal(403, "RequestTimeTooSkewed"), set(ASKS), "clock"),
    "full": (refusal(507, "XMinioStorageFull"), {"put", "put_new"}, "free space"),
    "no conditional puts": (refusal(501, "NotImplemented"), {"put_new"}, "tallymark doctor"),
    "no S3": (Say(404, b"<html>not found</html>", {"Content-Type": "text/html"}), set(ASKS), "endpoint"),
}


@pytest.mark.parametrize(
    ("why", "verb"), [(why, verb) for why, (_, verbs, _) in REFUSALS.items() for verb in ASKS if verb in verbs]
)
@on_both_loops
async def test_a_refusal_is_told_at_once_with_place_and_remedy(why, verb):
    answer, _, remedy = REFUSALS[why]
    with scripted_server() as server:
        server.say(answer)
        with pytest.raises(NotPermitted, match=remedy) as caught:
            await ASKS[verb](retrying_s3(server.endpoint, "lake"))
        assert str(caught.value).startswith("s3://lake")
        assert len(server.asked) == 1


@on_both_loops
async def test_a_refused_publish_is_told_with_place_and_remedy():
    with scripted_server() as server:
        server.say(refusal(403, "AccessDenied"))
        file = retrying_s3(server.endpoint, "lake").new_file("p=1/a", staging="")
        with pytest.raises(NotPermitted, match=r"s3://lake/p=1/a: .* grant s3:PutObject"):
            file.publish()
        file.abandon()
        assert len(server.asked) == 1


@on_both_loops
async def test_of_a_bucket_that_does_not_exist_nothing_is_made(s3):
    for ask in ASKS.values():
        with pytest.raises(NotPermitted, match="bucket's name"):
            await ask(retrying_s3(s3.endpoint, "no-such-bucket"))
    assert "no-such-bucket" not in [found["Name"] for found in s3.client.list_buckets()["Buckets"]]


@on_both_loops
async def test_a_store_that_lists_out_of_order_is_refused():
    with scripted_server() as server:
        server.say(page(["t/b", "t/a"]))
        with pytest.raises(BackendError, match="out of order"):
            await listed(retrying_s3(server.endpoint, "lake"), "t")
