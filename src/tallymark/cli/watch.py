"""``tallymark markers URL --watch``: the markers of open instants, scanned repeatedly."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from tallymark.cli.asking import Place, failing_plainly
from tallymark.engine.documents.watch import WatchDocument, watched_fields

if TYPE_CHECKING:
    from anyio import CancelScope

    from tallymark.engine.inspection.watch import InstantWatch


Show = Callable[[WatchDocument], None]


def watch_markers(at: Place, instant: str | None, every_s: float) -> None:
    """Scan until interrupted, or until the named instant is over."""
    import anyio

    with failing_plainly(as_json=at.as_json), _shown(at) as show:
        anyio.run(_watch, at, instant, every_s, show, backend="trio")


@contextmanager
def _shown(at: Place) -> Iterator[Show]:
    if at.as_json:
        yield lambda document: click.echo(json.dumps(document))
        return
    from tallymark.cli.watch_page import shown_scans

    with shown_scans() as show:
        yield show


async def _watch(at: Place, instant: str | None, every_s: float, show: Show) -> None:
    import anyio

    from tallymark.engine.background import background_tasks
    from tallymark.engine.table import open_table

    table = open_table(at.url, options=at.options)
    watched = await table.watch()
    with anyio.CancelScope() as scope:
        async with background_tasks() as background:
            background.start_soon(_until_interrupted, scope)
            while True:
                if await _scan(watched, table.url, instant, show):
                    return
                await anyio.sleep(every_s)


async def _scan(watched: "InstantWatch", url: str, instant: str | None, show: Show) -> bool:
    """Scan once. Return True if the named instant is over."""
    found = await watched.scan(instant)
    moment = datetime.now(UTC).isoformat(timespec="milliseconds")
    show({"url": url, "at": moment, "instants": [watched_fields(each) for each in found]})
    return instant is not None and all(each.is_over for each in found)


async def _until_interrupted(scope: "CancelScope") -> None:
    """End a watch at Ctrl-C without a failure."""
    import anyio

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
