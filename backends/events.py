"""One log line per event: ``noun.verb key=value key="a value with spaces"``.

Owns: the form of a line. Every line that the library logs goes through here, so that people read them and machines
split them; docs/operating.md lists the events with their keys.
"""

import json
import logging
import re

Field = object | None
"""What a key may have as its value. None leaves the key out; an error shows its class and its message."""

_PLAIN = re.compile(r"[^ \"=]+")


class EventLog:
    """The events of one module, on the logger of its name.

    A record also carries ``event`` and ``fields`` as attributes, for handlers that write JSON. Nothing is formatted
    where no handler is listening.
    """

    def __init__(self, module: str) -> None:
        self._logger = logging.getLogger(module)

    def debug(self, event: str, /, **fields: Field) -> None:
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: Field) -> None:
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: Field) -> None:
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, /, **fields: Field) -> None:
        self._log(logging.ERROR, event, fields)

    def fault(self, event: str, /, **fields: Field) -> None:
        """Log an error of this library, with the stack of the exception that is being handled."""
        self._log(logging.ERROR, event, fields, with_stack=True)

    def _log(self, level: int, event: str, fields: dict[str, Field], *, with_stack: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            known = {key: value for key, value in fields.items() if value is not None}
            logged = {"event": event, "fields": known}
            self._logger.log(level, "%s", event_line(event, known), exc_info=with_stack, extra=logged, stacklevel=3)


def event_line(event: str, fields: dict[str, Field]) -> str:
    """Return the line, whatever the values contain: it stays one line, and splits at spaces outside double quotes.

    Values that are empty or contain spaces, quotes, equals signs or what cannot be printed are quoted as in JSON.
    """
    return " ".join([event, *(f"{key}={_shown(value)}" for key, value in fields.items())])


def _shown(value: Field) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.6g}"
        case BaseException():
            return _quoted(": ".join(filter(None, (type(value).__name__, str(value)))))
        case _:
            return _quoted(str(value))


def _quoted(text: str) -> str:
    is_printable = text.isprintable()
    return text if is_printable and _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=not is_printable)
