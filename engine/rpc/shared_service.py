"""The driver's request to a service outside of it: how the tasks of its job connect there."""

import json
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlencode, urlsplit

import anyio.to_thread

from tallymark.engine.errors import InvalidRequest, ServiceUnavailable
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.settings import SharedServiceSettings


async def shared_address(settings: SharedServiceSettings, url: str, instant: str) -> ServiceAddress:
    """Return how the tasks of this instant of the table at the URL connect.

    Raises:
        ServiceUnavailable: no answer within ``wait_s``, or none that can be used.
        InvalidRequest: the service refuses: the table is below none of its roots, for one.
    """
    return await anyio.to_thread.run_sync(_ask, settings, url, instant, abandon_on_cancel=True)


def _ask(settings: SharedServiceSettings, url: str, instant: str) -> ServiceAddress:
    place = urlsplit(settings.url)
    assert place.hostname is not None, "it was checked"
    connection = HTTPConnection(place.hostname, place.port or 80, timeout=settings.wait_s)
    try:
        connection.request("POST", f"/v1/jobs?{urlencode({'table': url, 'instant': instant})}")
        response = connection.getresponse()
        body = response.read()
    except (OSError, HTTPException) as error:
        raise ServiceUnavailable(
            f"no answer from the service at {settings.url} within {settings.wait_s:g} s (last: {error!r}); check that "
            "'tallymark serve' runs there, and that this machine can reach it"
        ) from error
    finally:
        connection.close()
    if response.status >= 500:
        raise ServiceUnavailable(f"the service at {settings.url} failed: {_text(body)}")
    if response.status != 200:
        raise InvalidRequest(f"the service at {settings.url} refuses: {_text(body)}")
    try:
        found = json.loads(body)
        return ServiceAddress(
            found["host"] or place.hostname, int(found["port"]), bytes.fromhex(found["key"]), str(found["job"])
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ServiceUnavailable(f"what listens at {settings.url} is not 'tallymark serve': {_text(body)}") from error


def _text(body: bytes) -> str:
    return body[:500].decode("utf-8", "replace").strip()
