"""Instant times: 17 digits, yyyyMMddHHmmssSSS in UTC, that name and order the actions on a table."""

from datetime import UTC, datetime, timedelta

from tallymark.engine.errors import CorruptObject

FLOOR = "19700101000000000"
"""The instant below all others. Readers of the Hudi format treat files older than a timeline's first instant as
committed; a commit at the floor leaves no file older.
"""

_WITHOUT_PUNCTUATION = str.maketrans("", "", "-T:.")


def instant_time(moment: datetime, *, after: str = FLOOR) -> str:
    """Return the instant of a moment, or one millisecond past ``after`` where the clock is behind it.

    Only real clock times are returned: readers silently drop an instant such as one of second 61.

    Raises:
        CorruptObject: ``after`` is not an instant, or the last possible one.
    """
    try:
        return max(_digits(moment), _digits(parse_instant(after) + timedelta(milliseconds=1)))
    except OverflowError as error:
        raise CorruptObject(f"no instant follows {after!r}; it was not made by a clock") from error


def parse_instant(instant: str) -> datetime:
    """Return the moment of an instant. Raises CorruptObject for a value that is not a real clock time."""
    try:
        if len(instant) == 17 and instant.isascii() and instant.isdigit():
            date = int(instant[:4]), int(instant[4:6]), int(instant[6:8])  # a fifth of the time of strptime
            time = int(instant[8:10]), int(instant[10:12]), int(instant[12:14]), int(instant[14:]) * 1000
            return datetime(*date, *time, tzinfo=UTC)
    except ValueError:
        pass
    raise CorruptObject(f"{instant!r} is not an instant: 17 digits of a UTC time, yyyyMMddHHmmssSSS")


def _digits(moment: datetime) -> str:
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")  # strftime does not pad the years before 1000
    return text.translate(_WITHOUT_PUNCTUATION)[:17]
