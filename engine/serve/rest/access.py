"""Who may do what: tokens of programs, sessions of browsers, and the checks against pages of strangers.

A session is a cookie that names a token and is signed with a key of the service's secret: services with the same secret
accept each other's, nothing is stored, and a token that is revoked ends its sessions.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import anyio

from tallymark.engine.errors import NotAuthenticated, Overloaded
from tallymark.engine.serve.rates import Rates
from tallymark.engine.serve.settings import PageSettings
from tallymark.engine.serve.tokens import NotAllowed, Role, Token, TokenFile
from tallymark.engine.setting_checks import is_loopback

COOKIE = "tallymark_session"
CSRF_HEADER = "X-CSRF-Token"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class WrongHost(NotAllowed):
    """The request names a host, or comes from an origin, that this service does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The client of one request."""

    client: str
    token: Token | None = None
    """None: the service has no tokens, and every client of this machine may read."""
    csrf: str | None = None
    """What a change by this session has to be accompanied by; None for a client that has presented its token."""

    def may_read(self, place: str) -> bool:
        return self.token is None or (Role.named(self.token.role) >= Role.READ and self.token.covers(place))

    def may_operate(self) -> bool:
        return self.token is not None and Role.named(self.token.role) >= Role.OPERATE

    def check(self, role: Role, place: str) -> None:
        """Raise NotAllowed unless the client has the role for the table at a place."""
        if self.token is not None:
            self.token.check(role, place)
        elif role > Role.READ:
            raise NotAllowed(
                "changes need a token, on this machine too: start the service with --tokens, and make one with "
                f"'tallymark serve token add --role {role.name.lower()}'"
            )


class Sessions:
    """Cookies of browsers."""

    def __init__(self, secret: bytes, hours: float) -> None:
        self._key = hmac.digest(secret, b"tallymark browser sessions", "sha256")
        self._lifetime = timedelta(hours=hours)

    def start(self, token: Token, now: datetime) -> str:
        """Return the cookie of a new session."""
        until = int((now + self._lifetime).timestamp())
        return f"{token.id}.{until}.{self._mac(token, until)}"

    def is_valid(self, cookie: str, token: Token, now: datetime) -> bool:
        _, _, rest = cookie.partition(".")
        until, _, mac = rest.partition(".")
        if not until.isascii() or not until.isdecimal() or len(until) > 12:
            return False
        return hmac.compare_digest(mac.encode(), self._mac(token, int(until)).encode()) and now.timestamp() < int(until)

    def csrf(self, cookie: str) -> str:
        """Return what a page of the session sends with each change: a page of a stranger cannot read it."""
        return hmac.new(self._key, f"csrf {cookie}".encode(), hashlib.sha256).hexdigest()

    def _mac(self, token: Token, until: int) -> str:
        return hmac.new(self._key, f"{token.id} {until} {token.hash}".encode(), hashlib.sha256).hexdigest()


class Gate:
    """Checks the requests of one service."""

    def __init__(self, settings: PageSettings, tokens: TokenFile | None, secret: bytes) -> None:
        self._tokens = tokens
        self._sessions = Sessions(secret, settings.session_hours)
        self._rates = Rates(settings.requests_per_s, settings.request_burst)
        self._hosts = {settings.host.lower(), *(host.lower() for host in settings.hosts)}
        if is_loopback(settings.host):
            self._hosts |= {"localhost", "127.0.0.1", "::1"}

    def check_host(self, method: str, headers: Mapping[str, str]) -> None:
        """Raise WrongHost unless the request names a host of this service and, if it is a change by a browser, comes
        from a page of it: a name of a stranger that leads to this address is not enough.
        """
        host, origin = headers.get("host", ""), headers.get("origin")
        if _hostname(f"//{host}") not in self._hosts:
            raise WrongHost(f"host {host!r} is none of this service's: name it in PageSettings.hosts (--page-name)")
        if method not in SAFE_METHODS and origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise WrongHost(f"origin {origin!r} is another site, which may change nothing here")

    def access(
        self,
        method: str,
        client: str,
        headers: Mapping[str, str],
        cookies: Mapping[str, str],
        *,
        csrf: str | None = None,
        is_new: bool = True,
    ) -> Access:
        """Return the client of a request; ``csrf`` is what a page has sent with it. It is counted if it ``is_new``.

        Raises:
            NotAuthenticated: it has presented nothing that is known.
            NotAllowed: a change of a session lacks what its page sends with it.
            Overloaded: requests arrive too often.
        """
        if self._tokens is None:
            self._count_new(client, is_new)
            return Access(client=client)
        try:
            access = self._authenticated(self._tokens, client, headers, cookies)
        except NotAuthenticated:
            self._count_new(client, is_new)
            raise
        self._count_new(access.token.id if access.token is not None else client, is_new)
        is_checked = access.csrf is not None and method not in SAFE_METHODS
        if is_checked and not hmac.compare_digest((csrf or "").encode(), (access.csrf or "").encode()):
            raise NotAllowed(f"a change by a session needs the {CSRF_HEADER} of its page: load the page again")
        return access

    def log_in(self, client: str, presented: str) -> str:
        """Return the cookie of a new session. Raises NotAuthenticated, Overloaded."""
        self.count(client)
        if self._tokens is None:
            raise NotAuthenticated("this service has no tokens: everything can be read without one")
        now = datetime.now(UTC)
        return self._sessions.start(self._tokens.authenticate(presented, now=now), now)

    def _count_new(self, key: str, is_new: bool) -> None:
        if is_new:
            self.count(key)

    def count(self, key: str) -> None:
        if wait_s := self._rates.wait_s(key, anyio.current_time()):
            raise Overloaded(f"{key} sends too many requests", retry_after_s=wait_s)

    def _authenticated(
        self, tokens: TokenFile, client: str, headers: Mapping[str, str], cookies: Mapping[str, str]
    ) -> Access:
        scheme, _, presented = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return Access(client=client, token=tokens.authenticate(presented.strip()))
        cookie = cookies.get(COOKIE, "")
        token, now = tokens.find(token_of(cookie) or ""), datetime.now(UTC)
        if token is None or token.is_expired(now) or not self._sessions.is_valid(cookie, token, now):
            raise NotAuthenticated("a token is needed, as 'Authorization: Bearer ...' or by a login at the page")
        return Access(client=client, token=token, csrf=self._sessions.csrf(cookie))


def token_of(cookie: str) -> str | None:
    """Return the id of the token that a cookie names; None for one that names none."""
    return cookie.partition(".")[0] or None


def _hostname(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
