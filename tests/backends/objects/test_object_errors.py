"""What obstore says of a store's answers, and what is made of it: through the real library, over real sockets.

A release of obstore that words its errors otherwise fails here.
"""

import re

import pytest

from tallymark.backends import AlreadyExists, InvalidPath, NotFound, NotPermitted, Throttled, Unavailable
from tallymark.backends.object_errors import CODES, STATUSES, translated
from tests.backends.objects.test_object_store import page
from tests.support.s3_clients import s3_backend
from tests.support.services.scripted_http import Say, refusal, scripted_server

pytestmark = pytest.mark.usefixtures("s3_keys")

CANARY = "canary-0xC0FFEE"

VERBS = {
    "get": lambda client: client.get("p/a"),
    "get_range": lambda client: client.get_range("p/a", 0, 1),
    "head": lambda client: client.nonce("p/a"),
    "put": lambda client: client.put("p/a", b"data"),
    "put_new": lambda client: client.put_new("p/a", b"data", "nonce"),
    "list": lambda client: client.page("p"),
    "delete": lambda client: client.delete(["p/a", "p/b"]),
}
all_verbs = pytest.mark.parametrize("verb", VERBS)
WITH_BODY = sorted(set(VERBS) - {"head"})


@pytest.fixture(scope="module")
def server():
    with scripted_server() as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    return s3_backend(server.endpoint, "lake", prefix="t")._client


def error_of(client, verb):
    """The error itself, and that it is exactly of its class."""
    try:
        VERBS[verb](client)
    except Exception as error:
        return error
    raise AssertionError(f"{verb} succeeded")


@all_verbs
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, NotPermitted),
        (401, NotPermitted),
        (403, NotPermitted),
        (405, NotPermitted),
        (408, Unavailable),
        (409, Unavailable),
        (418, NotPermitted),
        (429, Throttled),
        (500, Unavailable),
        (501, NotPermitted),
        (502, Unavailable),
        (503, Throttled),
        (504, Unavailable),
        (507, NotPermitted),
        (599, Unavailable),
    ],
)
def test_a_status_without_a_known_code_means_the_same_for_each_verb(server, client, verb, status, expected):
    server.say(Say(status))
    error = error_of(client, verb)
    assert type(error) is expected
    assert str(status) in str(error)
    assert len(server.asked) == 1


@pytest.mark.parametrize("verb", WITH_BODY)
@pytest.mark.parametrize("code", sorted(set(CODES) - {"NoSuchKey"}))
def test_a_code_says_more_than_the_status(server, client, verb, code):
    server.say(refusal(400, code))
    error = error_of(client, verb)
    assert type(error) is CODES[code].error
    assert str(error).startswith("s3://lake/t")
    assert f"{code} (said the store)" in str(error)
    assert CODES[code].remedy.split("{", maxsplit=1)[0] in str(error)


@pytest.mark.parametrize(
    ("verb", "status", "code", "expected"),
    [
        ("get", 404, "NoSuchKey", NotFound),
        ("get", 404, "NoSuchBucket", NotPermitted),
        ("get", 404, "", NotPermitted),
        ("head", 404, "", NotFound),
        ("put", 404, "NoSuchKey", NotPermitted),
        ("put_new", 404, "NoSuchBucket", NotPermitted),
        ("list", 404, "NoSuchBucket", NotPermitted),
        ("list", 404, "NoSuchKey", NotPermitted),
        ("delete", 404, "NoSuchKey", NotFound),
        ("delete", 404, "NoSuchBucket", NotPermitted),
        ("put_new", 412, "PreconditionFailed", AlreadyExists),
        ("put", 412, "PreconditionFailed", NotPermitted),
        ("put_new", 409, "ConditionalRequestConflict", Unavailable),
        ("put", 503, "SlowDown", Throttled),
        ("put", 400, "RequestTimeout", Unavailable),
        ("put", 403, "QuotaExceeded", NotPermitted),
        ("put_new", 501, "NotImplemented", NotPermitted),
    ],
)
def test_answers_mean_what_s3_means_by_them(server, client, verb, status, code, expected):
    server.say(refusal(status, code))
    assert type(error_of(client, verb)) is expected


def test_an_absent_object_is_told_without_the_stores_words(server, client):
    server.say(refusal(404, "NoSuchKey"))
    assert str(error_of(client, "get")) == "s3://lake/t/p/a does not exist"


@all_verbs
@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "reason=InvalidCertificate",
        "reason=BadScheme",
        "latest/meta-data",
        "x/latest/api/token",
        "x/computeMetadata/v1",
    ],
)
def test_no_answer_in_time_is_an_unknown_outcome_whatever_words_the_key_has(server, verb, prefix):
    server.say(Say(wait_s=30))
    error = error_of(s3_backend(server.endpoint, "lake", prefix=prefix, request_timeout_s=0.3)._client, verb)
    assert type(error) is Unavailable
    assert "no answer in time" in str(error)


@all_verbs
@pytest.mark.parametrize(
    ("endpoint", "expected", "said"),
    [
        ("http://127.0.0.1:1", Unavailable, "nothing listens there"),
        ("http://no.such.host.invalid", NotPermitted, "no host has this name"),
        ("https://{server}", NotPermitted, "http://"),
    ],
    ids=["nothing listens", "no such host", "TLS to a server without it"],
)
def test_a_server_that_cannot_be_reached_is_told_with_the_reason(server, verb, endpoint, expected, said):
    endpoint = endpoint.format(server=server.endpoint.removeprefix("http://"))
    error = error_of(s3_backend(endpoint, "lake")._client, verb)
    assert type(error) is expected
    assert said in str(error)


@all_verbs
def test_a_redirect_to_another_region_names_the_option(server, client, verb):
    server.say(refusal(301, "PermanentRedirect"))
    error = error_of(client, verb)
    assert type(error) is NotPermitted
    assert "StorageOptions.region" in str(error)


@pytest.mark.parametrize("verb", sorted(set(VERBS) - {"list"}))
def test_an_answer_that_no_object_store_gives_is_no_success(server, client, verb):
    server.say(Say(200, b"<html>It works!</html>", {"Content-Type": "text/html"}))
    assert type(error_of(client, verb)) is (NotPermitted if verb in ("get", "get_range", "head") else Unavailable)


@pytest.mark.parametrize(
    ("code", "expected", "said"),
    [
        ("AccessDenied", NotPermitted, "key 't/p/b'.*grant s3:DeleteObject"),
        ("InternalError", Unavailable, ""),
    ],
)
def test_a_key_of_many_that_is_not_deleted_is_named_with_what_to_do(server, client, code, expected, said):
    failed = f"<Error><Key>t/p/b</Key><Code>{code}</Code><Message>x</Message></Error>"
    server.say(Say(200, f"<DeleteResult><Deleted><Key>t/p/a</Key></Deleted>{failed}</DeleteResult>".encode()))
    error = error_of(client, "delete")
    assert type(error) is expected
    assert re.search(said, str(error))


def test_a_foreign_object_with_a_key_that_no_path_can_be_is_named(server, client):
    server.say(page(["t/p//x"]))
    error = error_of(client, "list")
    assert type(error) is InvalidPath
    assert "t/p//x" in str(error)


@all_verbs
def test_nothing_of_a_refusals_body_is_told_but_code_and_sentence(server, client, verb):
    more = f"<Token-0>{CANARY}</Token-0><CanonicalRequest>x-amz-security-token:{CANARY}</CanonicalRequest>"
    server.say(refusal(403, "SignatureDoesNotMatch", more=more))
    error = error_of(client, verb)
    assert CANARY not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        (
            "Error performing PUT http://169.254.169.254/latest/api/token in 1s - HTTP error",
            NotPermitted,
            "no credentials",
        ),
        (
            "Error performing PUT http://169.254.169.254/latest/api/token - status code: 503 Service Unavailable: ",
            Unavailable,
            "no credentials",
        ),
        (
            "Error performing POST REDACTED in 1s - Server returned non-2xx status code: 403 Forbidden: <Error>",
            NotPermitted,
            "no credentials",
        ),
        (
            "Error performing POST REDACTED in 1s - Server returned non-2xx status code: 500 x: <Error>",
            Unavailable,
            "no credentials",
        ),
        ("dns error: Temporary failure in name resolution", Unavailable, "no answer"),
        ("something that nobody has foreseen", Unavailable, "no answer"),
    ],
)
def test_what_needs_another_machine_to_happen_is_read_from_the_librarys_words(text, expected, said):
    error = translated(Exception(text), "put", "s3://lake/a", {})
    assert type(error) is expected
    assert said in str(error)


def test_every_remedy_can_be_told():
    for meaning in [*CODES.values(), *STATUSES.values()]:
        assert re.fullmatch(r"[^{}]*(\{right\}[^{}]*)?", meaning.remedy)
