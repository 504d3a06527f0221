"""Commits of a table as server-sent events, whose ids are positions: a client that was away gets what it missed."""

from collections.abc import AsyncGenerator, AsyncIterator

import anyio
import msgspec

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.rest.lake import Lake
from tallymark.engine.serve.rest.lake_table import LakeTable
from tallymark.engine.serve.rest.problems import status_of
from tallymark.engine.serve.settings import PageSettings

SILENCE_S = 15.0
"""Time after which a comment is sent, so that proxies do not end a connection on which nothing has happened."""

READ_COUNT = 100
"""Entries that are read and sent at once."""


async def events(
    lake: Lake, table: LakeTable, settings: PageSettings, start: int | None
) -> AsyncGenerator[bytes, None]:
    """Yield an event for each entry after a position, by default for each from now on, until cancelled.

    Events are ``commit``, ``rollback`` and ``clean``, with the entry as of ``/commits``. ``archived`` states the
    position from which on entries can be read where earlier ones were to be sent, and ``problem`` why the table cannot
    be read now.
    """
    position = (await table.version()).position if start is None else start
    yield b": the id of an event is its position\n\n"
    spoken_at, problem = anyio.current_time(), ""
    while True:
        try:
            poll_s = settings.written_poll_s if lake.is_written(table) else settings.poll_s
            version = await table.version(max_age_s=poll_s)
            sent = [each async for each in _entries(table, position)] if version.position > position else []
            problem = ""
        except TallymarkError as error:
            poll_s = settings.poll_s
            sent = [] if str(error) == problem else [(position, _event("problem", None, _problem(error)))]
            problem = str(error)
        for after, event in sent:
            position = after
            yield event
        if sent or anyio.current_time() - spoken_at >= SILENCE_S:
            spoken_at = anyio.current_time()
            if not sent:
                yield b": nothing new\n\n"
        await anyio.sleep(settings.written_poll_s)


async def _entries(table: LakeTable, position: int) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the next entries after a position with theirs."""
    try:
        found = await table.timeline(after=position, last=READ_COUNT)
    except InvalidRequest as error:
        first = await table.read(lambda kept: kept.start())
        if first <= position:
            raise
        yield first, _event("archived", first, {"position": first, "detail": str(error)})
        return
    for entry in found["entries"]:
        yield entry["position"], _event(entry["kind"], entry["position"], entry)


def _problem(error: TallymarkError) -> dict[str, object]:
    return {"title": type(error).__name__, "status": status_of(error).value, "detail": str(error)}


def _event(kind: str, position: int | None, document: object) -> bytes:
    id_ = b"" if position is None else b"id: %d\n" % position
    return b"event: %b\n%bdata: %b\n\n" % (kind.encode(), id_, msgspec.json.encode(document))
