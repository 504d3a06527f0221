"""The driver's request to a service outside of it: how the tasks of its job connect there."""

import json
import ssl
import time
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from urllib.parse import unquote, urlencode, urlsplit

import anyio.to_thread

from tallymark.engine.errors import InvalidRequest, NotAuthenticated, ServiceUnavailable
from tallymark.engine.rpc.handshake import PROTOCOL, RELEASE, ServiceAddress
from tallymark.engine.rpc.tls import client_context
from tallymark.engine.settings import SharedServiceSettings

RETRY_PAUSE_S = 0.2
"""Between two attempts to connect: a service that starts again takes a second."""


async def shared_address(settings: SharedServiceSettings, url: str, instant: str) -> ServiceAddress:
    """Return how the tasks of this instant of the table at the URL connect.

    Raises:
        ServiceUnavailable: no answer within ``wait_s``, or none that can be used.
        NotAuthenticated: the token does not allow that.
        InvalidRequest: the service refuses otherwise: the table is below none of its roots, for one.
    """
    return await anyio.to_thread.run_sync(_request, settings, "/v1/jobs", url, instant, abandon_on_cancel=True)


async def commits_address(settings: SharedServiceSettings, url: str) -> ServiceAddress:
    """Return how drivers connect that have commits of the table at the URL decided. Raises as ``shared_address``."""
    return await anyio.to_thread.run_sync(_request, settings, "/v1/commits", url, None, abandon_on_cancel=True)


def _request(settings: SharedServiceSettings, route: str, url: str, instant: str | None) -> ServiceAddress:
    url = unquote(urlsplit(url).path) if url.startswith("file:") else url  # services name local tables by their path
    given = {"table": url} if instant is None else {"table": url, "instant": instant}
    certificates = _certificates(settings)
    context = None if certificates is None else client_context(certificates)
    until = time.monotonic() + settings.wait_s
    while True:
        try:
            response, body = _answer(settings, f"{route}?{urlencode(given)}", context, until - time.monotonic())
        except ServiceUnavailable as error:  # it may be starting
            pause_s = RETRY_PAUSE_S
            is_final = isinstance(error.__cause__, ssl.SSLCertVerificationError)
            if is_final or time.monotonic() + pause_s >= until:
                raise
        else:
            requested_s = _pause_s(response)
            if requested_s is None or time.monotonic() + requested_s >= until:
                return _address(settings, response.status, body, certificates)
            pause_s = requested_s
        time.sleep(pause_s)  # noqa: TID251  # in a worker thread


def _certificates(settings: SharedServiceSettings) -> str | None:
    if not settings.url.startswith("https:"):
        return None
    if settings.ca_file is None:
        return ""
    try:
        return Path(settings.ca_file).read_text("ascii")
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"the certificates to trust, {settings.ca_file}, cannot be read: {error}") from error


def _answer(
    settings: SharedServiceSettings, target: str, context: ssl.SSLContext | None, left_s: float
) -> tuple[HTTPResponse, bytes]:
    place = urlsplit(settings.url)
    host, port, timeout_s = str(place.hostname), place.port, max(left_s, 0.001)
    connection = (
        HTTPConnection(host, port, timeout=timeout_s)
        if context is None
        else HTTPSConnection(host, port, timeout=timeout_s, context=context)
    )
    headers = {} if settings.token is None else {"Authorization": f"Bearer {settings.token}"}
    try:
        connection.request("POST", target, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    except (OSError, HTTPException) as error:
        raise ServiceUnavailable(
            f"no answer from the service at {settings.url} within {settings.wait_s:g} s (last: {error!r}); check that "
            "'tallymark serve' runs there, that this machine can reach it, and that it trusts its certificate"
        ) from error
    finally:
        connection.close()


def _pause_s(response: HTTPResponse) -> float | None:
    """Return the pause that the service asks for before the next request; None where its answer is final."""
    if response.status not in (429, 503):
        return None
    try:
        return float(response.getheader("Retry-After", "1"))
    except ValueError:
        return 1.0


def _address(settings: SharedServiceSettings, status: int, body: bytes, certificates: str | None) -> ServiceAddress:
    text = body[:500].decode("utf-8", "replace").strip()
    if status >= 500 or status == 429:
        raise ServiceUnavailable(f"the service at {settings.url} does not answer: {text}")
    if status in (401, 403):
        raise NotAuthenticated(f"the service at {settings.url} refuses: {text}")
    if status != 200:
        raise InvalidRequest(f"the service at {settings.url} refuses: {text}")
    try:
        found = json.loads(body)
        _check_protocol(settings, found)
        host = found["host"] or urlsplit(settings.url).hostname
        return ServiceAddress(
            str(host), int(found["port"]), bytes.fromhex(found["key"]), str(found["job"]), certificates
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ServiceUnavailable(f"what listens at {settings.url} is not 'tallymark serve'") from error


def _check_protocol(settings: SharedServiceSettings, found: dict[str, object]) -> None:
    """Raise ServiceUnavailable if tasks of this release could not use the service: their job does without it."""
    protocols = found.get("protocols")
    if not isinstance(protocols, list) or PROTOCOL not in protocols:
        raise ServiceUnavailable(
            f"the service at {settings.url} is of tallymark {found.get('release')} and serves protocols {protocols}, "
            f"and this is {RELEASE} with protocol {PROTOCOL}; a service serves the two releases before its own"
        )
