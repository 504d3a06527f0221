"""Tokens of drivers: what each may do with which table, for how long, and the file that has them."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from tallymark.engine.errors import InvalidRequest, NotAuthenticated
from tallymark.engine.serve.job_routes import ROLES
from tallymark.engine.serve.rates import KEYS_MAX, Rates
from tallymark.engine.serve.secret_file import read_or_create
from tallymark.engine.serve.tokens import NotAllowed, Role, TokenFile, add_token, read_tokens, revoke_token
from tests.support.rights import NEEDS_ROOT, as_nobody, open_folder

NOW = datetime(2026, 11, 26, tzinfo=UTC)
ROLE_NAMES = [role.name.lower() for role in Role]


def authorize(tokens: TokenFile, presented: str, role: Role, place: str, *, now: datetime | None = None) -> str:
    """As the service does for a request."""
    token = tokens.authenticate(presented, now=now)
    token.check(role, place)
    return token.id


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


OPERATIONS = sorted(f"{method} {route}" for method, route in ROLES)


def test_every_operation_has_a_row_of_the_matrix():
    assert OPERATIONS == ["GET /livez", "GET /readyz", "POST /v1/commits", "POST /v1/jobs"]


@pytest.mark.parametrize(("role", "operation"), [*product(ROLE_NAMES, OPERATIONS)])
@pytest.mark.parametrize("place", ["/lake/sales/orders", "/lake/sales", "/lake/salesforce/orders", "s3://lake/sales/x"])
def test_a_token_opens_the_operations_of_its_role_on_its_tables_and_nothing_else(path, role, operation, place):
    token = add_token(path, role, ["/lake/sales/*"])
    needed = ROLES[tuple(operation.split(" "))]
    if needed is None:
        return
    tokens = TokenFile(path)
    if Role.named(role) >= needed and place == "/lake/sales/orders":
        assert authorize(tokens, token, needed, place) == read_tokens(path)[0].id
    else:
        with pytest.raises(NotAllowed, match="does not allow to write"):
            authorize(tokens, token, needed, place)


@pytest.mark.parametrize(
    ("pattern", "covered", "left_out"),
    [
        ("/lake/sales", "/lake/sales", "/lake/sales/orders"),
        ("s3a://lake/sales/*", "s3://lake/sales/orders", "s3://lake2/sales/orders"),
        ("s3://lake/*/orders", "s3://lake/a/b/orders", "s3://lake/orders"),
        ("/lake/sales/", "/lake/sales", "/lake/sale"),
        ("gs://lake/day=20[0-9]", "gs://lake/day=207", "gs://lake/day=2017"),
    ],
)
def test_patterns_are_of_places(path, pattern, covered, left_out):
    token, tokens = add_token(path, "write", [pattern]), TokenFile(path)
    authorize(tokens, token, Role.WRITE, covered)
    with pytest.raises(NotAllowed):
        authorize(tokens, token, Role.WRITE, left_out)


def test_what_is_no_token_of_the_file_is_refused(path):
    token = add_token(path, "admin", ["/*"])
    tokens, other = TokenFile(path), add_token(path.with_name("other"), "admin", ["/*"])
    altered = token[:-1] + ("A" if token[-1] != "A" else "B")
    swapped = token[:12] + other[12:]
    for false in ("", token[:-1], altered, swapped, other, token.upper(), f"{token} ", read_tokens(path)[0].hash):
        with pytest.raises(NotAuthenticated, match="missing, unknown or expired"):
            authorize(tokens, false, Role.READ, "/lake")


def test_a_token_ends_by_its_time_and_by_revocation_without_a_restart(path):
    short = add_token(path, "write", ["/lake"], valid_days=1, now=NOW)
    tokens = TokenFile(path)
    authorize(tokens, short, Role.WRITE, "/lake", now=NOW + timedelta(hours=23))
    with pytest.raises(NotAuthenticated):
        authorize(tokens, short, Role.WRITE, "/lake", now=NOW + timedelta(hours=24))
    second = add_token(path, "write", ["/lake"])  # two are valid at once: one takes over from the other
    assert {authorize(tokens, token, Role.WRITE, "/lake", now=NOW) for token in (short, second)} == {
        token.id for token in read_tokens(path)
    }
    revoke_token(path, read_tokens(path)[1].id)
    with pytest.raises(NotAuthenticated):
        authorize(tokens, second, Role.WRITE, "/lake", now=NOW)
    authorize(tokens, short, Role.WRITE, "/lake", now=NOW)


def test_the_file_has_hashes_and_is_its_users_alone(path):
    token = add_token(path, "write", ["/lake"])
    assert token not in path.read_text()
    assert token[13:] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_file_keeps_its_mode_and_a_link_stays_one(path):
    link = path.with_name("link.json")
    add_token(path, "write", ["/lake"])
    path.chmod(0o640)
    link.symlink_to(path)
    add_token(link, "write", ["/lake"])
    assert (link.is_symlink(), len(read_tokens(path)), stat.S_IMODE(path.stat().st_mode)) == (True, 2, 0o640)


def test_a_file_that_others_may_write_is_read_again_once_they_may_not(path):
    token = add_token(path, "write", ["/lake"])
    tokens = TokenFile(path)
    path.chmod(0o622)
    revoke = json.dumps({"tokens": []})
    path.write_text(revoke)
    assert authorize(tokens, token, Role.WRITE, "/lake")
    path.chmod(0o600)
    with pytest.raises(NotAuthenticated):
        authorize(tokens, token, Role.WRITE, "/lake")


def test_tokens_that_are_added_at_the_same_time_all_are_there(path):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: add_token(path, "write", ["/lake"]), range(32)))
    assert {token.id for token in read_tokens(path)} == {text[4:12] for text in made}


def test_a_file_that_cannot_be_read_leaves_the_tokens_that_were_read(path, caplog):
    token = add_token(path, "write", ["/lake"])
    tokens = TokenFile(path)
    path.write_text("{")
    assert authorize(tokens, token, Role.WRITE, "/lake")
    assert "tokens.unreadable" in caplog.text
    path.unlink()
    with pytest.raises(InvalidRequest, match="cannot be read"):
        TokenFile(path)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{", "is not a file of tokens"),
        ("[]", "is not a file of tokens"),
        (json.dumps({"tokens": [{"id": "a"}]}), "is not a file of tokens"),
        (
            json.dumps({"tokens": [{"id": "a", "hash": "b", "role": "owner", "tables": ["/a"]}]}),
            "role 'owner' is none of",
        ),
        (json.dumps({"tokens": [{"id": "a", "hash": "b", "role": "read", "tables": []}]}), "names no tables"),
        (json.dumps({"tokens": [{"id": "a", "hash": "b", "role": "read", "tables": ["lake/*"]}]}), "absolute path"),
        (
            json.dumps({"tokens": [{"id": "a", "hash": "b", "role": "read", "tables": ["/a"], "expires": "soon"}]}),
            "'soon' is not a time",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_named(path, text, rule):
    path.write_text(text)
    with pytest.raises(InvalidRequest, match=rule):
        TokenFile(path)


def test_tokens_that_others_may_write_are_refused(path):
    add_token(path, "write", ["/lake"])
    path.chmod(0o622)
    with pytest.raises(InvalidRequest, match="others may write these tokens"):
        TokenFile(path)


def test_an_unknown_token_cannot_be_revoked(path):
    add_token(path, "write", ["/lake"])
    with pytest.raises(InvalidRequest, match="has no token 'deadbeef'"):
        revoke_token(path, "deadbeef")
    assert len(read_tokens(path)) == 1


def test_a_secret_is_made_once_and_refused_where_others_may_read_it(tmp_path):
    path = tmp_path / "state" / "serve.secret"
    secret = read_or_create(path)
    assert len(secret) == 32
    assert read_or_create(path) == secret
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    path.chmod(0o640)
    with pytest.raises(InvalidRequest, match="others may read this secret"):
        read_or_create(path)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(InvalidRequest, match="has 5 bytes"):
        read_or_create(path)


@NEEDS_ROOT
@pytest.mark.parametrize(("mode", "is_refused"), [(0o440, False), (0o640, False), (0o444, True), (0o660, True)])
def test_a_secret_of_root_is_read_by_its_group_alone(mode, is_refused):
    with open_folder() as folder:
        path = folder / "secret"
        path.write_bytes(bytes(32))
        path.chmod(mode)
        with pytest.raises(InvalidRequest, match="others may read") if is_refused else nullcontext(), as_nobody():
            assert read_or_create(path) == bytes(32)


def test_requests_beyond_a_rate_wait_and_one_key_takes_nothing_from_another():
    rates = Rates(per_s=2.0, burst=3)
    assert [rates.wait_s("a", 0.0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert rates.wait_s("b", 0.0) == 0
    assert [rates.wait_s("a", 0.5), rates.wait_s("a", 0.5)] == [0, 0.5]
    assert [rates.wait_s("a", 100.0) for _ in range(4)] == [0, 0, 0, 0.5]
    for number in range(2 * KEYS_MAX):
        rates.wait_s(str(number), 200.0)
    assert len(rates._left) == KEYS_MAX
