"""Pages for browsers: the documents of the lake as HTML, and the session of the client."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import parse_qs, quote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.documents.explain import explain_document
from tallymark.engine.documents.files import sizes_document
from tallymark.engine.documents.status import status_document
from tallymark.engine.documents.summary import summary_of, summary_of_unreadable
from tallymark.engine.errors import CorruptObject, NotAuthenticated, UnsupportedTable
from tallymark.engine.serve.audit import audited
from tallymark.engine.serve.logs import request_id
from tallymark.engine.serve.page.assets import assets
from tallymark.engine.serve.page.pages import PageContext, Pages
from tallymark.engine.serve.rest.access import COOKIE, SAFE_METHODS, Access, token_of
from tallymark.engine.serve.rest.actions import ACTIONS
from tallymark.engine.serve.rest.app import Rest, client_of, position_of, read_body
from tallymark.engine.serve.rest.lake_table import LakeTable, partitions_document
from tallymark.engine.serve.rest.problems import status_of
from tallymark.engine.serve.tokens import NotAllowed, Role

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

NEWEST_COUNT = 50
"""Entries of the timeline on the page of a table."""

NEWEST_S = 0.2
"""Time for which a page waits for entries that no page has shown yet; the next one has more of them."""

ITEM_COUNT = 100
"""Partitions, and markers, on a page."""

REFRESH_S = 5.0
"""Interval at which a browser refreshes a page of a table or a job; that of all tables by ``PageSettings.poll_s``."""

REFRESHES_END = 286
"""Status of an answer that htmx shows, after which it refreshes the page no more."""

_events = EventLog(__name__)

Answer = Callable[[Request, Access], Awaitable[Response]]


class PageRoutes:
    """Answers browsers."""

    def __init__(self, rest: Rest, *, is_secure: bool) -> None:
        """``is_secure``: the service has a certificate, so that cookies need not travel without TLS."""
        self._rest = rest
        self._base = rest.settings.base_path
        self._is_secure = is_secure
        self._pages = Pages()

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self._page(self._fleet)),
            Route("/tables/{table}", self._page(self._table)),
            Route("/tables/{table}/jobs/{instant}", self._page(self._job)),
            Route("/tables/{table}/file", self._page(self._file)),
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/logout", self._page(self._logout), methods=["POST"]),
            Route("/static/{name}", _static),
        ]

    async def _fleet(self, _: Request, access: Access) -> Response:
        lake = self._rest.lake
        summaries = await lake.summaries(access.may_read)
        problems = {root: problem for root, problem in lake.problems.items() if access.may_read(root)}
        return self._html(self._pages.fleet(summaries, self._context(access, self._rest.settings.poll_s), problems))

    async def _table(self, request: Request, access: Access) -> Response:
        table = await self._rest.opened(access, request.path_params["table"], Role.READ)
        context = self._context(access, REFRESH_S, table)
        try:
            return self._html(await self._table_page(table, request, context))
        except (CorruptObject, UnsupportedTable) as error:
            found = summary_of_unreadable(table.id, table.url, error)
            return self._html(self._pages.unreadable(found, context))

    async def _table_page(self, table: LakeTable, request: Request, context: PageContext) -> str:
        start, end = (position_of(name, request.query_params.get(name, "")) for name in ("start", "end"))
        diff = None
        if start is not None and end is not None:
            async with self._rest.heavy:
                diff = await table.diff(start, end)
        status = await table.status()
        return self._pages.table(
            table.id,
            status=status_document(table.url, status),
            summary=summary_of(table.id, table.url, status),
            timeline=await table.timeline(last=NEWEST_COUNT, within_s=NEWEST_S),
            sizes=sizes_document(table.url, status.sizes),
            partitions=partitions_document(table.url, status.sizes, limit=ITEM_COUNT),
            jobs=await table.jobs(),
            diff=diff,
            context=context,
        )

    async def _job(self, request: Request, access: Access) -> Response:
        table = await self._rest.opened(access, request.path_params["table"], Role.READ)
        instant = request.path_params["instant"]
        job = next((each for each in (await table.jobs())["jobs"] if each["instant"] == instant), None)
        if job is None:
            text = f"Instant {instant} of {table.url} is not open: it was committed or rolled back, or never was."
            page = self._pages.message("This job is over", text, self._context(access, 0, table))
            is_refresh = "hx-request" in request.headers
            return self._html(page, REFRESHES_END if is_refresh else HTTPStatus.NOT_FOUND)
        page = self._pages.job(
            table.id,
            table.url,
            job=job,
            loss=await table.loss(instant),
            markers=await table.markers(instant, limit=ITEM_COUNT),
            context=self._context(access, REFRESH_S, table),
        )
        return self._html(page)

    async def _file(self, request: Request, access: Access) -> Response:
        table = await self._rest.opened(access, request.path_params["table"], Role.READ)
        path = request.query_params.get("path")
        explained = None
        if path:
            async with self._rest.heavy:
                explained = await explain_document(table.fresh(), path)
        context = self._context(access, 0, table)
        return self._html(self._pages.file(table.id, table.url, explain=explained, context=context))

    async def _login(self, request: Request) -> Response:
        error, status = None, HTTPStatus.OK
        if request.method == "POST":
            client, outcome, cookie = client_of(request), "answered", ""
            try:
                cookie = self._rest.gate.log_in(client, (await self._form(request)).get("token", ""))
            except TallymarkError as failed:
                error, status, outcome = str(failed), status_of(failed), type(failed).__name__
            else:
                response = RedirectResponse(self._next(request), HTTPStatus.SEE_OTHER, HEADERS)
                self._set_cookie(response, cookie, round(self._rest.settings.session_hours * 3600))
                return response
            finally:
                token = token_of(cookie)
                audited("log in", client=client, token=token, table="", instant="", outcome=outcome)
        return self._html(self._pages.login(error, self._context(None, 0)), status)

    async def _logout(self, _: Request, __: Access) -> Response:
        response = RedirectResponse(f"{self._base}/login", HTTPStatus.SEE_OTHER, HEADERS)
        self._set_cookie(response, "", 0)
        return response

    def _page(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """Return the same for clients with access; the others log in, and errors are pages."""

        async def respond(request: Request) -> Response:
            access = None
            with request_id(request.headers.get("x-request-id", "")):
                try:
                    given = {} if request.method in SAFE_METHODS else await self._form(request)
                    access = self._rest.access(request, csrf=given.get("csrf"))
                    return await answer(request, access)
                except Exception as error:
                    return self._failed(request, access, error)

        return respond

    def _failed(self, request: Request, access: Access | None, error: Exception) -> Response:
        if isinstance(error, NotAuthenticated) and not isinstance(error, NotAllowed):
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{self._base}/login?next={quote(target, safe='')}", HTTPStatus.SEE_OTHER, HEADERS)
        text = str(error)
        if not isinstance(error, TallymarkError):
            _events.fault("request.failed", instant=None)
            text = "The service failed; its log says how."
        status = status_of(error)
        return self._html(
            self._pages.message(f"{status.value} {status.phrase}", text, self._context(access, 0)), status
        )

    async def _form(self, request: Request) -> dict[str, str]:
        body = await read_body(request, self._rest.settings.request_bytes)
        return {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}

    def _next(self, request: Request) -> str:
        """Return the page that a login was for, if it is one of this service."""
        target = urlsplit(request.query_params.get("next", ""))
        is_own = not target.scheme and not target.netloc and target.path.startswith(f"{self._base}/tables/")
        return target.geturl() if is_own else f"{self._base}/"

    def _set_cookie(self, response: Response, value: str, seconds: int) -> None:
        response.set_cookie(
            COOKIE,
            value,
            max_age=seconds,
            path=self._base or "/",
            secure=self._is_secure,
            httponly=True,
            samesite="lax",  # so that links in mails lead to a page and not to a login
        )

    def _context(self, access: Access | None, refresh_s: float, table: LakeTable | None = None) -> PageContext:
        is_operator = access is not None and access.may_operate() and (table is None or access.may_read(table.place))
        return PageContext(
            now=datetime.now(UTC),
            base_path=self._base,
            csrf=None if access is None else access.csrf,
            token_id=None if access is None or access.csrf is None or access.token is None else access.token.id,
            can_operate=is_operator,
            actions=[action.name for action in ACTIONS],
            refresh_s=refresh_s,
        )

    def _html(self, page: str, status: int = HTTPStatus.OK) -> Response:
        return HTMLResponse(page, status, HEADERS)


async def _static(request: Request) -> Response:
    asset = assets().get(request.path_params["name"])
    if asset is None:
        return Response(status_code=HTTPStatus.NOT_FOUND)
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(asset.content, headers=headers, media_type=asset.media_type)
