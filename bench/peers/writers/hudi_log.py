"""What Hudi's own log says of a write's markers: how long tasks waited for them, and how long their deletion took."""

import re
from collections.abc import Iterable
from pathlib import Path

from tallymark.bench.writes.order import Figures

_CREATED = re.compile(r"\d+ \[[a-z-]+\] Created marker file .* in (\d+) ms")
_COMMITTED = re.compile(r"(\d+) Committed \d+")
_REMOVED = re.compile(r"(\d+) Removed directory at .*/\.hoodie/\.temp/\d+")


def configuration(log: Path) -> str:
    """Log4j's, for those lines to go to a file, each after the milliseconds of its time; warnings to standard error."""
    loggers = ("org.apache.hudi.table.marker", "org.apache.hudi.client", "org.apache.hudi.common.fs")
    lines = [
        "rootLogger.level = warn",
        "rootLogger.appenderRef.stderr.ref = stderr",
        *_appender("stderr", "Console", target="SYSTEM_ERR"),
        *_appender("file", "File", fileName=str(log)),
        "appender.file.layout.pattern = %d{UNIX_MILLIS} %m%n",
    ]
    for number, name in enumerate(loggers):
        lines += [f"logger.{number}.name = {name}", f"logger.{number}.level = info"]
        lines += [f"logger.{number}.additivity = false", f"logger.{number}.appenderRef.file.ref = file"]
    return "\n".join([*lines, ""])


def _appender(name: str, kind: str, **named: str) -> list[str]:
    fields = {"type": kind, "name": name, "layout.type": "PatternLayout", **named}
    return [f"appender.{name}.{key} = {value}" for key, value in fields.items()]


def marker_figures(lines: Iterable[str]) -> Figures:
    """Of one write. The deletion is what lies between the commit's line and that of the folder's removal."""
    waits_ms, committed_ms, figures = [], None, {}
    for line in lines:
        if found := _CREATED.match(line):
            waits_ms.append(int(found[1]))
        elif found := _COMMITTED.match(line):
            committed_ms = int(found[1])
        elif (found := _REMOVED.match(line)) and committed_ms is not None:
            figures["marker_deletion_s"] = (int(found[1]) - committed_ms) / 1000
    return {"markers": len(waits_ms), "marker_wait_s": sum(waits_ms) / 1000, **figures}
