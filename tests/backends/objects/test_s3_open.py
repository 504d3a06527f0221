"""From URL and options to requests: where they go, how they are signed, and that no secret shows anywhere."""

import dataclasses
import logging
import traceback
from contextlib import suppress

import anyio
import pytest

from tallymark.backends import BackendError, InvalidPath, NotPermitted, StorageOptions, Unavailable, open_backend
from tallymark.backends.errors import NotInstalled
from tests.support import providers
from tests.support.loops import on_both_loops
from tests.support.providers import CANARY
from tests.support.s3_clients import ONCE, s3_backend
from tests.support.services.s3_server import ENVIRONMENT
from tests.support.services.scripted_http import Say, refusal, scripted_server

PROVIDERS = "tests.support.providers"


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """No credentials but those that a test names; no metadata service, no files of the machine's user."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    providers.calls.clear()


@pytest.fixture
def server():
    with scripted_server() as server:
        server.say(Say())
        yield server


@pytest.fixture
def keys(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FROMENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)


def asked_with(server):
    """The key id with which the last request was signed."""
    return server.asked[-1].headers["authorization"].partition("Credential=")[2].partition("/")[0]


# URLs


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3://lake", "s3://lake"),
        ("s3://lake/", "s3://lake"),
        ("s3://lake/a/b", "s3://lake/a/b"),
        ("s3://lake/a/b/", "s3://lake/a/b"),
        ("s3a://lake/a", "s3://lake/a"),
        ("S3A://lake/a", "s3://lake/a"),
        ("s3://my.old_Bucket/a", "s3://my.old_Bucket/a"),
        ("s3://lake/a b/100%25/#x?y", "s3://lake/a b/100%25/#x?y"),
        ("s3://lake/user@host/x:y", "s3://lake/user@host/x:y"),
    ],
)
def test_a_url_names_a_bucket_and_a_prefix_as_it_is_written(url, told):
    backend = open_backend(url)
    assert backend.url == told
    assert repr(backend) == f"<S3Backend {told}>"
    assert not backend.has_staging


@pytest.mark.parametrize(
    ("urls", "rule"),
    [
        (["s3:", "s3:/", "s3://", "s3:///a", "s3:lake"], "names no bucket"),
        (["s3://-lake/x"], "bucket '-lake': a name has 2 to 255 letters, digits"),
        (["s3://la ke/x"], "bucket 'la ke': a name has 2 to 255 letters, digits"),
        (["s3://l/x"], "bucket 'l': a name has 2 to 255 letters, digits"),
        (["s3://lake/a//b", "s3://lake/../x", "s3://lake/a\nb", "s3://lake//a"], "."),
    ],
)
def test_a_url_without_a_bucket_or_with_a_name_that_cannot_be_is_refused_with_the_rule(urls, rule):
    for url in urls:
        with pytest.raises(InvalidPath, match=rule):
            open_backend(url)


@pytest.mark.parametrize("url", [f"s3://AKIA:{CANARY}@lake/a", f"s3a://{CANARY}@lake", f"s3://AKIA:{CANARY}"])
def test_credentials_in_a_url_are_refused_and_not_repeated(url):
    with pytest.raises(InvalidPath, match="environment, a role or a profile") as caught:
        open_backend(url)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@on_both_loops
async def test_a_path_that_fits_alone_but_not_below_the_prefix_is_refused():
    path = "/".join(["a" * 255] * 4)
    with pytest.raises(InvalidPath, match="longer than 1024"):
        await open_backend("s3://lake/prefix").put(path, b"")


@on_both_loops
async def test_stores_below_two_prefixes_of_one_bucket_do_not_meet(s3, bucket, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    one, ten = (open_backend(f"s3://{bucket}/t{number}", options=s3.options) for number in (1, 10))
    await one.put_new("a", b"1")
    await ten.put_new("a", b"10")
    assert s3.objects(bucket) == {"t1/a": b"1", "t10/a": b"10"}
    assert [entry.path async for entry in one.list("")] == ["a"]


@on_both_loops
async def test_an_object_of_a_directorys_own_name_is_not_below_it(s3, bucket, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for key in ("t/", "t/a/", "t/a/b"):
        s3.client.put_object(Bucket=bucket, Key=key, Body=b"")
    backend = open_backend(f"s3://{bucket}/t", options=s3.options)
    assert [entry.path async for entry in backend.list("a")] == ["a/b"]


# where requests go


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"])
def test_the_endpoint_of_the_environment_is_taken_and_that_of_the_options_goes_before_it(server, monkeypatch, variable):
    monkeypatch.setenv(variable, server.endpoint)
    s3 = open_backend("s3://lake/t", options=StorageOptions(region="eu-west-3"))
    anyio.run(s3.put, "a", b"")
    assert server.asked[-1].target == "/lake/t/a"
    assert "/eu-west-3/s3/" in server.asked[-1].headers["authorization"]
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    s3_backend(server.endpoint, "lake", prefix="t")._client.put("b", b"")
    assert server.asked[-1].target == "/lake/t/b"


@pytest.mark.usefixtures("keys")
def test_without_path_style_the_bucket_stands_in_the_host(server):
    client = s3_backend(server.endpoint.replace("127.0.0.1", "localhost"), "lake", path_style=False)._client
    with suppress(NotPermitted):  # of a resolver that knows no names below localhost
        client.put("t/a", b"")
        assert server.asked[-1].target == "/t/a"
        assert server.asked[-1].headers["host"].startswith("lake.localhost:")
    assert all(asked.target == "/t/a" for asked in server.asked)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        *(({"endpoint": url}, "is not a server's URL") for url in ("minio:9000", "ftp://x", "http://", "http://a b")),
        ({"endpoint": "http://x/?q"}, "is not a server's URL"),
        ({"endpoint": f"http://user:{CANARY}@x"}, "contains credentials"),
        ({"profile": "lake", "credentials": "a:b"}, "both"),
    ],
)
def test_options_that_cannot_be_are_refused_with_the_rule_and_no_secret(options, rule):
    with pytest.raises(InvalidPath, match=rule) as caught:
        open_backend("s3://lake", options=StorageOptions(**options))
    assert CANARY not in str(caught.value)


@pytest.mark.usefixtures("keys")
def test_certificates_that_cannot_be_read_are_named(server, tmp_path):
    with pytest.raises(NotPermitted, match=r"no\.pem"):
        s3_backend(server.endpoint, "lake", ca_file=str(tmp_path / "no.pem"))._client.get("a")
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(NotPermitted, match="check the options"):
        s3_backend(server.endpoint, "lake", ca_file=str(tmp_path / "bad.pem"))._client.get("a")


# credentials


@pytest.mark.usefixtures("keys")
def test_a_named_provider_goes_before_the_environment_and_is_asked_once_while_what_it_gave_lasts(server):
    s3_backend(server.endpoint, "lake")._client.put("a", b"")
    assert asked_with(server) == "FROMENV"
    client = s3_backend(server.endpoint, "lake", credentials=f"{PROVIDERS}:lasting")._client
    assert providers.calls == []
    for _ in range(3):
        client.put("a", b"")
    assert asked_with(server) == "LASTING"
    assert server.asked[-1].headers["x-amz-security-token"] == f"token-{CANARY}"
    assert providers.calls == ["lasting"]


def test_a_provider_is_asked_again_when_what_it_gave_has_expired(server):
    client = s3_backend(server.endpoint, "lake", credentials=f"{PROVIDERS}:expired")._client
    for number in (1, 2, 3):
        client.put("a", b"")
        assert asked_with(server) == f"EXPIRED{number}"


@pytest.mark.parametrize(
    ("name", "expected", "told"),
    [
        (f"{PROVIDERS}:failing", NotPermitted, "raised RuntimeError"),
        (f"{PROVIDERS}:interrupted", Unavailable, "raised ConnectionResetError"),
        (f"{PROVIDERS}:empty", NotPermitted, "gave no secret_access_key"),
        (f"{PROVIDERS}:naive", NotPermitted, "gave .* time zone"),
        (f"{PROVIDERS}:nothing", NotPermitted, "gave no mapping"),
        (f"{PROVIDERS}:no_function", NotPermitted, "raised TypeError"),
        (f"{PROVIDERS}:absent", NotPermitted, "raised AttributeError"),
        ("no.such.module:get", NotPermitted, "raised ModuleNotFoundError"),
    ],
)
def test_a_provider_that_fails_is_named_and_nothing_that_it_said_is_repeated(server, name, expected, told, caplog):
    caplog.set_level(logging.DEBUG)
    client = s3_backend(server.endpoint, "lake", credentials=name)._client
    with pytest.raises(expected, match=f"{name} {told}") as caught:
        client.put("a", b"")
    assert server.asked == []
    assert CANARY not in "".join(traceback.format_exception(caught.value)) + caplog.text


def test_a_profile_gives_keys_and_region(server, tmp_path):
    (tmp_path / "config").write_text("[profile lake]\nregion = eu-central-1\n")
    (tmp_path / "credentials").write_text(f"[lake]\naws_access_key_id = PROFILED\naws_secret_access_key = {CANARY}\n")
    client = s3_backend(server.endpoint, "lake", profile="lake")._client
    client.put("a", b"")
    assert asked_with(server) == "PROFILED"
    assert "/us-east-1/" in server.asked[-1].headers["authorization"]  # what the options say goes before


def test_a_profile_that_does_not_exist_is_named(server):
    with pytest.raises(NotPermitted, match=r"nobody.*~/\.aws"):
        s3_backend(server.endpoint, "lake", profile="nobody")._client.get("a")


def test_a_profile_without_boto3_names_the_extra(monkeypatch):
    monkeypatch.setattr("tallymark.backends.s3.find_spec", lambda _: None)
    with pytest.raises(NotInstalled, match=r"pip install 'tallymark\[aws\]'") as caught:
        open_backend("s3://lake", options=StorageOptions(profile="lake"))
    assert isinstance(caught.value, ImportError)


def test_a_provider_that_hangs_is_named_and_not_waited_for(server):
    backend = s3_backend(server.endpoint, "lake", credentials=f"{PROVIDERS}:hanging", request_timeout_s=0.4)
    file = backend.new_file("a", staging="")
    with pytest.raises(Unavailable, match=r"providers:hanging gave no answer within 0\.2 s"):
        file.publish()
    assert server.asked == []


# secrets


@pytest.mark.parametrize("credentials", [None, f"{PROVIDERS}:lasting"])
@on_both_loops
async def test_no_secret_shows_in_repr_url_statistics_options_errors_or_logs(server, keys, caplog, credentials):
    caplog.set_level(logging.DEBUG)
    backend = s3_backend(server.endpoint, "lake", ONCE, credentials=credentials, request_timeout_s=0.2)
    token = f"<Token-0>{CANARY}</Token-0>"
    shown = []
    for answer in (
        Say(),
        refusal(400, "ExpiredToken", more=token),
        refusal(500, "InternalError", more=token),
        Say(wait_s=9),
    ):
        server.say(answer)
        for ask in (
            lambda: backend.get("a"),
            lambda: backend.put("a", b""),
            lambda: backend.put_new("a", b""),
            lambda: backend.delete(["a"]),
            lambda: anyio.to_thread.run_sync(backend.new_file("a", staging="").publish),
        ):
            try:
                await ask()
            except BackendError as error:
                shown.append("".join(traceback.format_exception(error)))
    assert len(shown) >= 10
    options = StorageOptions(endpoint=server.endpoint, credentials=credentials)
    shown += [repr(backend), str(vars(backend)), str(vars(backend._client)), str(backend.statistics()), backend.url]
    shown += [repr(options), str(dataclasses.asdict(options)), caplog.text]
    assert not [text for text in shown if CANARY in text]


def test_without_credentials_anywhere_the_error_says_where_they_were_sought(monkeypatch):
    with scripted_server() as metadata:
        metadata.say(Say(404))
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", metadata.endpoint)
        backend = s3_backend("http://127.0.0.1:1", "lake")
        with pytest.raises(NotPermitted, match="no credentials"):
            backend._client.get("a")
        assert metadata.asked
        metadata.say(Say(503))
        with pytest.raises(Unavailable, match="no credentials"):
            backend._client.get("a")


def test_a_web_identity_whose_token_service_does_not_answer_is_told_without_its_token(monkeypatch, tmp_path):
    (tmp_path / "token").write_text(CANARY)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/lake")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "https://127.0.0.1:1")
    with pytest.raises(Unavailable, match="no credentials") as caught:
        s3_backend("http://127.0.0.1:1", "lake")._client.get("a")
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_importing_the_library_needs_no_vendor_and_opening_s3_needs_obstore_alone():
    import subprocess
    import sys

    program = (
        "import sys, tallymark; vendors = {'obstore', 'boto3', 'botocore'}; before = vendors & sys.modules.keys(); "
        "tallymark.open_backend('s3://lake/t'); print(before, vendors & sys.modules.keys())"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "set() {'obstore'}\n"
