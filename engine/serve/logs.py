"""Log lines of a service: text or JSON on standard error, with the id of the request that they belong to."""

import json
import logging
import logging.config
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.settings import ServeSettings

AUDIT = "tallymark.audit"
"""Logger of the lines about requests of drivers."""

_request: ContextVar[str | None] = ContextVar("request", default=None)

_GIVEN = re.compile(r"[0-9A-Za-z._-]{1,64}")


@contextmanager
def request_id(given: str) -> Iterator[str]:
    """Yield the id of a request for the block, and add it to the log lines of its task and the tasks below it.

    That is the client's, from ``X-Request-Id``, where it is short and plain; otherwise a new one.
    """
    id_ = given if _GIVEN.fullmatch(given) else secrets.token_hex(8)
    token = _request.set(id_)
    try:
        yield id_
    finally:
        _request.reset(token)


@contextmanager
def no_request() -> Iterator[None]:
    """Start tasks in the block that belong to no request."""
    token = _request.set(None)
    try:
        yield
    finally:
        _request.reset(token)


def configure_logs(settings: ServeSettings) -> None:
    """Send the log lines of this process where the settings state.

    Raises InvalidRequest if the file of the audit log cannot be opened.
    """
    level = settings.log_level.upper()
    handlers: dict[str, object] = {"shown": {"class": "logging.StreamHandler", "formatter": "lines"}}
    audit: dict[str, object] = {"level": "INFO"}
    if settings.audit_log is not None:
        file = {"class": "logging.handlers.WatchedFileHandler", "filename": settings.audit_log, "encoding": "utf-8"}
        handlers["audit"] = {**file, "formatter": "lines"}
        audit |= {"handlers": ["audit"], "propagate": False}
    try:
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "formatters": {"lines": {"()": _Json if settings.log_format == "json" else _Text}},
                "handlers": handlers,
                "loggers": {"tallymark": {"level": level}, AUDIT: audit},
                # Libraries log more than their users expect at lower levels: credentials, for one.
                "root": {"level": "INFO" if level == "DEBUG" else level, "handlers": ["shown"]},
            }
        )
    except ValueError as error:
        raise InvalidRequest(
            f"setting audit_log={settings.audit_log!r}: the file cannot be opened: {error.__cause__}"
        ) from error


class _Text(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's own name
        request = _request.get()
        return super().formatMessage(record) + (f" request={request}" if request else "")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event = getattr(record, "event", None)
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": event,
            "message": None if event else record.getMessage(),
            "request": _request.get(),
            **{key: _plain(value) for key, value in getattr(record, "fields", {}).items()},
            "exception": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps({key: value for key, value in line.items() if value is not None}, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, BaseException):
        return ": ".join(filter(None, (type(value).__name__, str(value))))
    return value if isinstance(value, int | float | str) else str(value)
