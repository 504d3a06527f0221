"""A put-if-absent whose answer is lost, late or wrong is never taken for another's, nor another's for one's own."""

import pytest

from tallymark.backends import AlreadyExists, NotPermitted, Throttled, Unavailable
from tallymark.backends.claim import Claim
from tallymark.backends.retry import RetrySettings
from tests.support.loops import on_both_loops
from tests.support.s3_clients import ONCE, patience_s, s3_backend
from tests.support.services.fault_plan import Fault, Kind
from tests.support.services.fault_proxy import fault_proxy
from tests.support.services.scripted_http import Say, refusal, scripted_server

pytestmark = pytest.mark.usefixtures("s3_keys")

LATE_S = 4.0
"""Twice what a request is waited for where it comes late."""
UNCLEAR = {
    "reset before": Fault(Kind.RESET_BEFORE),
    "reset after": Fault(Kind.RESET_AFTER),
    "500 before": Fault(Kind.STATUS_BEFORE, 500),
    "500 after": Fault(Kind.STATUS_AFTER, 500),
    "503 before": Fault(Kind.STATUS_BEFORE, 503),
    "503 after": Fault(Kind.STATUS_AFTER, 503),
    "409 before": Fault(Kind.STATUS_BEFORE, 409),
    "timeout": Fault(Kind.DELAY, delay_s=LATE_S),
    "torn": Fault(Kind.TORN),
}
"""What may happen to a put; "after": it was done all the same."""

APPLIED = {"reset after", "500 after", "503 after", "torn"}
unclear = pytest.mark.parametrize("name", UNCLEAR)


@pytest.fixture
def proxy(s3):
    with fault_proxy(s3.endpoint) as proxy:
        yield proxy


@pytest.fixture
def backend(request, proxy, bucket):
    return s3_backend(proxy.endpoint, bucket, request_timeout_s=patience_s(request, late_s=LATE_S))


@pytest.fixture
def server():
    with scripted_server() as server:
        yield server


@unclear
@on_both_loops
async def test_put_new_succeeds_through_any_fault_and_stores_its_bytes_once(s3, bucket, proxy, backend, name):
    fault = proxy.script(UNCLEAR[name], method="PUT", times=2)
    await backend.put_new("a/b", b"mine")
    assert fault.happened >= 1
    assert s3.objects(bucket) == {"a/b": b"mine"}


@unclear
@on_both_loops
async def test_put_new_of_a_taken_name_is_refused_through_any_fault_though_the_bytes_are_equal(
    s3, bucket, proxy, backend, name
):
    await s3_backend(s3.endpoint, bucket).put_new("a", b"equal")
    proxy.script(UNCLEAR[name], method="PUT")
    with pytest.raises(AlreadyExists, match=f"s3://{bucket}/a"):
        await backend.put_new("a", b"equal")
    assert s3.objects(bucket) == {"a": b"equal"}


@on_both_loops
async def test_an_object_that_was_put_without_a_nonce_is_anothers(s3, bucket, backend):
    s3.client.put_object(Bucket=bucket, Key="a", Body=b"equal")
    with pytest.raises(AlreadyExists):
        await backend.put_new("a", b"equal")


@unclear
def test_publish_sends_the_bytes_once_and_finds_out_what_became_of_them(s3, bucket, proxy, backend, name):
    proxy.script(UNCLEAR[name], method="PUT")
    file = backend.new_file("p=1/a", staging="")
    file.sink.write(b"rows")
    if name in APPLIED:
        file.publish()
        assert s3.objects(bucket) == {"p=1/a": b"rows"}
    else:
        with pytest.raises(Unavailable, match=f"s3://{bucket}/p=1/a"):
            file.publish()
        file.again("p=1/b").publish()
        assert s3.get(bucket, "p=1/b") == b"rows"
    assert proxy.requests["PUT"] == (1 if name in APPLIED else 2)


@unclear
def test_publish_onto_a_fence_is_refused_through_any_fault(s3, bucket, proxy, backend, name):
    s3.client.put_object(Bucket=bucket, Key="a", Body=b"fence")
    proxy.script(UNCLEAR[name], method="PUT")
    file = backend.new_file("a", staging="")
    with pytest.raises(AlreadyExists):
        file.publish()
    file.abandon()
    assert s3.objects(bucket) == {"a": b"fence"}


def test_publish_is_unknown_where_reading_back_fails_too(s3, bucket, proxy, backend):
    proxy.script(Fault(Kind.RESET_AFTER), method="PUT")
    proxy.script(Fault(Kind.STATUS_BEFORE, 500), method="HEAD")
    file = backend.new_file("a", staging="")
    with pytest.raises(Unavailable):
        file.publish()
    file.abandon()
    assert proxy.requests == {"PUT": 1, "HEAD": 1}


@on_both_loops
async def test_put_new_stays_unknown_when_no_answer_comes_at_all(bucket, proxy):
    backend = s3_backend(proxy.endpoint, bucket, RetrySettings(attempt_count=3, pause_s=0))
    proxy.script(Fault(Kind.RESET_BEFORE), method="PUT", times=99)
    with pytest.raises(Unavailable, match="3 times") as caught:
        await backend.put_new("a", b"")
    assert not isinstance(caught.value, AlreadyExists)
    assert proxy.requests["PUT"] == 3


@on_both_loops
async def test_a_refusal_after_an_unclear_attempt_is_no_proof_that_nothing_was_written(server):
    backend = s3_backend(server.endpoint, "lake")
    server.say(refusal(500, "InternalError"), refusal(404, ""), refusal(403, "AccessDenied"))
    with pytest.raises(Unavailable, match="an earlier request may have been taken"):
        await backend.put_new("a", b"")
    nonces = [asked.headers["x-amz-meta-tallymark-nonce"] for asked in server.asked if asked.method == "PUT"]
    assert len(nonces) == 2
    assert len(set(nonces)) == 1


@on_both_loops
async def test_a_refusal_is_no_proof_while_an_attempt_that_was_given_up_is_still_on_its_way(server):
    backend = s3_backend(server.endpoint, "lake", RetrySettings(attempt_timeout_s=3.0, pause_s=0))
    server.say(Say(wait_s=20), refusal(403, "AccessDenied"))
    with pytest.raises(Unavailable, match="an earlier request may have been taken"):
        await backend.put_new("a", b"")
    assert server.verbs == ["PUT", "PUT"]


@on_both_loops
async def test_a_refusal_at_once_is_a_refusal(server):
    backend = s3_backend(server.endpoint, "lake")
    server.say(refusal(403, "AccessDenied"))
    with pytest.raises(NotPermitted, match="s3:PutObject"):
        await backend.put_new("a", b"")
    assert server.verbs == ["PUT"]


def test_taken_and_not_to_be_read_is_a_refusal_that_names_the_right(server):
    client = s3_backend(server.endpoint, "lake", ONCE)._client
    server.say(refusal(412, "PreconditionFailed"), refusal(403, "AccessDenied"))
    with pytest.raises(NotPermitted, match="s3:GetObject"):
        Claim(client, "a", b"").attempt()
    assert server.verbs == ["PUT", "HEAD"]


def test_a_412_of_a_request_that_somebody_on_the_way_had_repeated_is_ones_own(server):
    client = s3_backend(server.endpoint, "lake", ONCE)._client
    stored = dict(Say().headers)

    def answer(asked):
        if asked.method == "PUT":
            stored["x-amz-meta-tallymark-nonce"] = asked.headers["x-amz-meta-tallymark-nonce"]
            return refusal(412, "PreconditionFailed")
        return Say(headers=stored)

    server.answer = answer
    Claim(client, "a", b"").attempt()
    assert server.verbs == ["PUT", "HEAD"]


def test_a_throttled_put_that_has_left_nothing_is_throttled(server):
    client = s3_backend(server.endpoint, "lake", ONCE)._client
    server.say(refusal(503, "SlowDown"), refusal(404, ""))
    with pytest.raises(Throttled, match="SlowDown"):
        Claim(client, "a", b"").attempt()
