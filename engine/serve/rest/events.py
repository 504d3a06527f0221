"""Commits of a table as server-sent events, whose ids are positions: a client that was away gets what it missed."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

import anyio
import msgspec

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import InvalidRequest, NotAuthenticated
from tallymark.engine.serve.rest.kept_table import Version
from tallymark.engine.serve.rest.lake import Lake, NoSuchTable
from tallymark.engine.serve.rest.lake_table import LakeTable
from tallymark.engine.serve.rest.problems import status_of
from tallymark.engine.serve.settings import PageSettings

SILENCE_S = 15.0
"""Time after which a comment is sent, so that proxies do not end a connection on which nothing has happened."""

READ_COUNT = 100
"""Entries that are read and sent at once."""

Opened = Callable[[], Awaitable[LakeTable]]


class Follower:
    """One client that waits for the entries of a table.

    Its events are ``commit``, ``rollback`` and ``clean``, with the entry as of ``/commits``. ``archived`` states the
    position from which on entries can be read where earlier ones were to be sent, ``replaced`` that the table was
    created again or restored, whose entries follow, and ``problem`` why the table cannot be read now.
    """

    def __init__(self, lake: Lake, settings: PageSettings, opened: Opened) -> None:
        """``opened`` returns the table, and raises once the client may not read it any more."""
        self._lake = lake
        self._settings = settings
        self._opened = opened
        self._seen: Version | None = None
        self._position = 0
        self._problem = ""

    async def start(self, position: int | None) -> None:
        """Start after a position, by default now. Raises what a query of the table does."""
        self._seen = await (await self._opened()).version()
        self._position = self._seen.position if position is None else position

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield events and comments until the client may not read the table any more."""
        yield b": the id of an event is its position\n\n"
        spoken_at = anyio.current_time()
        while True:
            pause_s = self._settings.written_poll_s
            try:
                sent = [event async for event in self._new()]
                self._problem = ""
            except (NotAuthenticated, NoSuchTable):
                return
            except TallymarkError as error:
                pause_s = self._settings.poll_s
                sent = [] if str(error) == self._problem else [_event("problem", None, _problem_of(error))]
                self._problem = str(error)
            for event in sent:
                yield event
            if not sent and anyio.current_time() - spoken_at >= SILENCE_S:
                sent = [b": nothing new\n\n"]
                yield sent[0]
            if sent:
                spoken_at = anyio.current_time()
            await anyio.sleep(min(pause_s, SILENCE_S))

    async def _new(self) -> AsyncIterator[bytes]:
        table = await self._opened()
        is_written = self._lake.is_written(table)
        poll_s = self._settings.written_poll_s if is_written else self._settings.poll_s
        version = await table.version(max_age_s=poll_s)
        before, self._seen = self._seen, version
        if version.position < self._position or (before is not None and version.replaces(before)):
            self._position = version.start
            detail = "the table was created again, or restored from a copy; its entries follow"
            yield _event("replaced", version.start, {"position": version.start, "detail": detail})
        if version.position == self._position:
            return
        try:
            found = await table.timeline(after=self._position, last=READ_COUNT)
        except InvalidRequest as error:
            if version.start <= self._position:
                raise
            self._position = version.start
            yield _event("archived", version.start, {"position": version.start, "detail": str(error)})
            return
        for entry in found["entries"]:
            self._position = entry["position"]
            yield _event(entry["kind"], entry["position"], entry)
        if not found["entries"]:
            self._position = version.position  # what follows is void


def _problem_of(error: TallymarkError) -> dict[str, object]:
    return {"title": type(error).__name__, "status": status_of(error).value, "detail": str(error)}


def _event(kind: str, position: int | None, document: object) -> bytes:
    id_ = b"" if position is None else b"id: %d\n" % position
    return b"event: %b\n%bdata: %b\n\n" % (kind.encode(), id_, msgspec.json.encode(document))
