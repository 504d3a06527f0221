"""Who may do what at each path, and requests that pages of strangers send."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from tallymark.engine.serve.rest.access import COOKIE, Sessions
from tallymark.engine.serve.rest.app import ALL_OPERATIONS
from tallymark.engine.serve.rest.lake_table import id_of
from tallymark.engine.serve.tokens import Role, Token, read_tokens, revoke_token
from tests.engine.serve.rest.scene import SECRET, Tokens, client_of, path_of, write

STREAMS = {("GET", "/v1/tables/{table}/events"): Role.READ, ("GET", "/metrics"): Role.READ}
ROLES = {(each.method, each.path): each.role for each in ALL_OPERATIONS} | STREAMS
OPEN = ("/livez", "/readyz", "/openapi.json", "/v1/problems/NotFound")
PAGES = ("/", "/tables/{table}", "/tables/{table}/jobs/{instant}", "/tables/{table}/file")
QUERIES = {"/v1/tables/{table}/diff": "?start=0&end=1", "/v1/tables/{table}/explain": "?file=x"}
BODIES = {"/v1/tables/{table}/plan": {"mode": "append"}}


@pytest.fixture
def tokens(tmp_path) -> Tokens:
    return Tokens(tmp_path)


def url_of(path: str, folder) -> str:
    return path.replace("{table}", id_of(str(folder))).replace("{instant}", "20260101000000000") + QUERIES.get(path, "")


async def statuses(tmp_path, tokens: Tokens | None, headers: dict[str, str]) -> dict[tuple[str, str], int]:
    """Send each operation once. Those that are allowed answer, or state what is wrong with this request."""
    folder = tmp_path / "lake/flights"
    await write(folder, 1)
    found = {}
    async with client_of(folder.parent, tokens=tokens) as client:
        for method, path in ROLES:
            if path.endswith("/events"):  # it does not end
                continue
            body = BODIES.get(path, {}) if method == "POST" else None
            answer = await client.request(method, url_of(path, folder), headers=headers, json=body)
            assert answer.status_code < 500, answer.text
            found[method, path] = answer.status_code
        refused = await client.get(f"{path_of(folder)}/events?after=x", headers=headers)
        found["GET", "/v1/tables/{table}/events"] = refused.status_code
        for path in OPEN:
            assert (await client.get(path)).status_code == 200
    return found


@pytest.mark.parametrize("role", [role.name.lower() for role in Role])
async def test_a_token_opens_what_its_role_allows_on_its_tables_and_nothing_else(tmp_path, tokens, role):
    found = await statuses(tmp_path, tokens, tokens.add(role, f"{tmp_path}/lake/*"))
    for operation, needed in ROLES.items():
        is_allowed = needed is None or Role.named(role) >= needed
        assert (found[operation] == 403) is not is_allowed, operation
        assert found[operation] in ((200, 400, 422) if is_allowed else (403,)), operation


@pytest.mark.parametrize("role", ["read", "admin"])
async def test_a_token_of_another_table_finds_nothing(tmp_path, tokens, role):
    found = await statuses(tmp_path, tokens, tokens.add(role, f"{tmp_path}/lake/flight"))
    assert {status for (_, path), status in found.items() if "{table}" in path} == {404}
    async with client_of(tmp_path / "lake", tokens=tokens) as client:
        headers = tokens.add(role, f"{tmp_path}/other/*")
        assert (await client.get("/v1/tables", headers=headers)).json()["tables"] == []
        assert "flights" not in (await client.get("/metrics", headers=headers)).text


@pytest.mark.parametrize(
    "presented", [{}, {"Authorization": f"Bearer tmk_00000000_{'A' * 43}"}, {"Authorization": "x"}]
)
async def test_without_a_token_everything_is_refused(tmp_path, tokens, presented):
    tokens.add("admin", "/*")
    assert set((await statuses(tmp_path, tokens, presented)).values()) == {401}
    async with client_of(tmp_path / "lake", tokens=tokens) as client:
        for path in PAGES:
            answer = await client.get(url_of(path, tmp_path / "lake/flights"), headers=presented)
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/login?next=%2F")


async def test_a_token_that_is_expired_or_revoked_is_refused(tmp_path, tokens):
    (tmp_path / "lake").mkdir()
    past = tokens.add("admin", "/*", valid_days=1, now=datetime.now(UTC) - timedelta(days=2))
    async with client_of(tmp_path / "lake", tokens=tokens) as client:
        assert (await client.get("/v1/tables", headers=past)).status_code == 401
        headers = tokens.add("admin", "/*")
        assert (await client.get("/v1/tables", headers=headers)).status_code == 200
        revoke_token(tokens.path, read_tokens(tokens.path)[-1].id)
        assert (await client.get("/v1/tables", headers=headers)).status_code == 401


async def test_a_service_without_tokens_can_be_read_and_not_changed(tmp_path):
    found = await statuses(tmp_path, None, {})
    assert {operation for operation, status in found.items() if status == 403} == {
        operation for operation, role in ROLES.items() if role is not None and role > Role.READ
    }


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:26757", 200),
        ("127.0.0.1:26757", 200),
        ("[::1]:26757", 200),
        ("lake.example", 200),
        ("LAKE.example:443", 200),
        ("evil.example:26757", 421),
        ("localhost.evil.example", 421),
        ("", 421),
        ("[", 421),
    ],
)
async def test_a_request_names_a_host_of_this_service(tmp_path, host, status):
    async with client_of(tmp_path, hosts=("lake.example",)) as client:
        assert (await client.get("/v1/tables", headers={"Host": host})).status_code == status
        assert (await client.get("/", headers={"Host": host})).status_code == status
        assert (await client.get("/livez", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:26757", 200),
        ("http://localhost:3000", 421),
        ("https://evil.example", 421),
        ("null", 421),
    ],
)
async def test_a_change_comes_from_no_other_site(tmp_path, tokens, origin, status):
    folder = tmp_path / "lake/flights"
    await write(folder, 1)
    headers = {**tokens.add("operate", "/*"), "Origin": origin}
    async with client_of(folder.parent, tokens=tokens) as client:
        answer = await client.post(f"{path_of(folder)}/actions/clean", headers=headers, json={})
        assert answer.status_code == status


async def test_a_session_reads_by_its_cookie_and_changes_only_with_what_its_page_sends(tmp_path, tokens):
    folder = tmp_path / "lake/flights"
    await write(folder, 1)
    presented = tokens.add("operate", f"{tmp_path}/*")["Authorization"].removeprefix("Bearer ")
    async with client_of(folder.parent, tokens=tokens, is_secure=True) as client:
        client.base_url = "https://localhost:26757"
        wrong = await client.post("/login", data={"token": presented[:-1]})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
        page = f"/tables/{id_of(str(folder))}"
        login = (await client.get(page)).headers["location"]
        assert 'method="post">' in (await client.get(login)).text, "the form is sent to where it is"
        answer = await client.post(login, data={"token": presented})
        assert (answer.status_code, answer.headers["location"]) == (303, page)
        cookie = answer.headers["set-cookie"]
        assert all(each in cookie for each in ("HttpOnly", "Secure", "SameSite=lax", "Path=/"))
        assert presented not in cookie
        html = (await client.get(page)).text
        csrf = html.partition('name="csrf-token" content="')[2].partition('"')[0]
        assert len(csrf) == 64
        action = f"{path_of(folder)}/actions/clean"
        for given in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": csrf[:-1] + "g"}):
            assert (await client.post(action, json={}, headers=given)).status_code == 403
        assert (await client.post(action, json={}, headers={"X-CSRF-Token": csrf})).status_code == 200
        assert (await client.post("/logout")).status_code == 403
        assert (await client.post("/logout", data={"csrf": csrf})).status_code == 303
        assert (await client.get(page)).status_code == 303


async def test_the_audit_has_the_token_of_a_login(tmp_path, tokens, caplog):
    caplog.set_level("INFO", "tallymark.audit")
    presented = tokens.add("read", "/*")["Authorization"].removeprefix("Bearer ")
    async with client_of(tmp_path, tokens=tokens) as client:
        for given in (presented, presented[:-1]):
            await client.post("/login", data={"token": given})
    lines = [record.fields for record in caplog.records if record.name == "tallymark.audit"]
    assert [(each.get("token"), each["outcome"]) for each in lines] == [
        (presented[4:12], "answered"),
        (None, "NotAuthenticated"),
    ]


async def test_a_login_leads_to_no_other_site(tmp_path, tokens):
    presented = tokens.add("read", "/*")["Authorization"].removeprefix("Bearer ")
    async with client_of(tmp_path, tokens=tokens) as client:
        for target in (
            "https://evil.example/tables/x",
            "//evil.example/tables/",
            "/v1/tables",
            "javascript:x",
            "/\\evil",
        ):
            answer = await client.post("/login", params={"next": target}, data={"token": presented})
            assert answer.headers["location"] == "/"


@pytest.mark.parametrize("change", ["expired", "another token", "cut off", "another secret", "later"])
def test_a_cookie_that_was_changed_or_is_over_is_no_session(change):
    token, now = Token(id="0" * 8, hash="h", role="read", tables=("/*",)), datetime(2026, 11, 27, tzinfo=UTC)
    sessions = Sessions(SECRET, 1)
    cookie = sessions.start(token, now)
    assert sessions.is_valid(cookie, token, now + timedelta(minutes=59))
    id_, until, mac = cookie.split(".")
    match change:
        case "expired":
            now += timedelta(hours=1)
        case "another token":
            token = Token(id="0" * 8, hash="other", role="admin", tables=("/*",))
        case "cut off":
            cookie = cookie[:-1]
        case "another secret":
            sessions = Sessions(b"t" * 32, 1)
        case "later":
            cookie = f"{id_}.{int(until) + 1}.{mac}"
    assert not sessions.is_valid(cookie, token, now)


@pytest.mark.parametrize("cookie", ["", ".", "..", "00000000..", "00000000.x.y", f"00000000.{'9' * 20}.y", "é.1.é"])
async def test_a_cookie_that_is_none_of_ours_is_a_login(tmp_path, tokens, cookie):
    tokens.add("read", "/*")
    async with client_of(tmp_path, tokens=tokens) as client:
        headers = [(b"Cookie", f"{COOKIE}={cookie}".encode())]
        assert (await client.get("/v1/tables", headers=headers)).status_code == 401


async def test_requests_that_arrive_too_often_wait(tmp_path, tokens):
    headers = tokens.add("read", "/*")
    async with client_of(tmp_path, tokens=tokens, request_burst=2, requests_per_s=0.01) as client:
        for given, path in product((headers, {}), ("/v1/tables",)):
            found = [(await client.get(path, headers=given)) for _ in range(3)]
            assert [each.status_code for each in found][:2] == [200 if given else 401] * 2
            assert (found[2].status_code, int(found[2].headers["retry-after"]) > 0) == (429, True)
