"""Resolution of ``as_of``: the log position of a position, an instant or a time.

A position is exact. An instant is the state right after its commit. A time is the newest commit that was *decided* by
then, by the store's clock, whenever its writer had started: what a reader of the log would have seen.
"""

from datetime import UTC, datetime
from math import isfinite

from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.instant import parse_instant
from tallymark.engine.timeline.log import EntryTimes
from tallymark.engine.timeline.properties import TableProperties

AsOf = int | str | datetime
"""A position; an instant, as ``tallymark timeline`` prints it; a time with its zone, or its ISO text."""


async def position_as_of(handle: TableHandle, properties: TableProperties, as_of: AsOf) -> int:
    """Return the position after the log has been read; all its files are still retained.

    Raises:
        InvalidRequest: there is no such position, instant or time, or files of it may be deleted; the message names the
            retained ones.
    """
    meant = checked(as_of)
    history = await handle.log.refresh()
    match meant:
        case int():
            position = _at_position(history, meant)
        case str():
            position = _at_instant(history, meant)
        case datetime():
            if meant > handle.clock.now():
                raise InvalidRequest(
                    f"as_of={_stated(as_of)} is still to come; leave as_of out to read the table as it is now"
                )
            position = _at_time(history, await handle.log.times(), meant)
    await check_retained(handle, properties, position, as_of)
    return position


def checked(as_of: AsOf) -> AsOf:
    """Return the same, with times as datetime. Raises InvalidRequest for what is none of the three."""
    match as_of:
        case bool():
            pass
        case int():
            return as_of
        case datetime():
            return _zoned(as_of)
        case str() if _is_instant(as_of):
            return as_of
        case str() if (moment := _moment(as_of)) is not None:
            return _zoned(moment)
    raise InvalidRequest(
        f"as_of={as_of!r} is neither a position, an instant of 17 digits nor a time; 'tallymark timeline' lists "
        "positions and instants, and a time is a datetime with its zone or a text such as '2026-11-21T09:00:00+00:00'"
    )


def _is_instant(text: str) -> bool:
    try:
        parse_instant(text)
    except CorruptObject:
        return False
    return True


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _zoned(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise InvalidRequest(
            f"as_of={_stated(moment)} has no time zone, and nine o'clock is another moment in each; add one, such "
            "as +00:00"
        )
    return moment


def _at_position(history: History, position: int) -> int:
    if not 0 <= position <= history.head:
        raise InvalidRequest(f"as_of={position}: the table has positions 0 (empty) to {history.head}")
    return position


def _at_instant(history: History, instant: str) -> int:
    decided = history.decided(instant)
    if decided is None or decided.kind == "clean":
        raise InvalidRequest(
            f"as_of={instant!r}: no such instant was committed; 'tallymark timeline' lists those that were"
        )
    if decided.position <= history.start:
        raise InvalidRequest(
            f"as_of={instant!r}: the log up to position {history.start}, and with it that instant, is archived; "
            "'tallymark timeline' lists what is kept"
        )
    if decided.kind == "rollback":
        raise InvalidRequest(f"as_of={instant!r}: that instant was rolled back, at position {decided.position}")
    return decided.position


def _at_time(history: History, put: EntryTimes, moment: datetime) -> int:
    commits = history.commits_after(history.start)
    by_then = [number for number in commits if put.at(number) <= moment.timestamp()]
    if by_then:
        return by_then[-1]
    first = f"the first was at {_shown(put.at(commits[0]))}" if commits else "there is none yet"
    if history.start:
        first = f"the log before position {history.start + 1} ({_shown(put.at(history.start + 1))}) is archived"
    raise InvalidRequest(f"as_of={_stated(moment)}: nothing had been committed by then; {first}")


async def check_retained(handle: TableHandle, properties: TableProperties, position: int, as_of: AsOf) -> None:
    """Check that all files of the position are still retained, as far as the log has been read.

    Raises:
        InvalidRequest: some may be deleted; the message names the retained positions.
    """
    history = await handle.log.reach(position)
    horizon = history.horizon if properties.readers == "table" else history.head
    later = {file.path for _, entry in history.after(position) for file in entry.added}
    if all(file.path in later for file in history.replaced(range(position + 1, horizon + 1))):
        return
    since = history.retained_since(horizon)
    put = await handle.log.times()
    raise InvalidRequest(
        f"as_of={_stated(as_of)} means position {position}, whose files are no longer all retained: "
        f"{_reason(properties)}; retained is everything since position {since}: give position {since} or a later one, "
        f"or a time after {_shown(put.at(since))}"
    )


def _reason(properties: TableProperties) -> str:
    if properties.readers == "table":
        return f"a clean has let go what was replaced before (retain_hours={properties.retain_hours:g})"
    return "with readers='directory' what an overwrite replaces, or an append fills, is deleted at once"


def _stated(as_of: AsOf) -> str:
    return repr(as_of.isoformat() if isinstance(as_of, datetime) else as_of)


def _shown(put: float) -> str:
    return datetime.fromtimestamp(put, UTC).isoformat(timespec="milliseconds") if isfinite(put) else "just now"
