"""Documents to render: the golden ones of the commands, with values in place of masks, and those of the service."""

import json
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[3] / "cli" / "golden"
INSTANT = "20261127030549785"
MASKS = {'"<int>"': "1536", '"<float>"': "7.5", "<instant>": INSTANT, "<str>": "2026-11-27T03:05:47+00:00"}
HOSTILE = "'\"><script>alert(1)</script><b onclick=alert(2)>&amp;"
_numbers = count()
NOW = datetime(2026, 11, 27, 3, 10, tzinfo=UTC)


def golden(command: str) -> Any:
    text = (GOLDEN / f"{command}.json").read_text()
    for mask, value in MASKS.items():
        text = text.replace(mask, value)
    return json.loads(text)


def summary(name: str, **values: Any) -> Any:
    sizes = {"files": 12, "rows": 36, "bytes": 10 << 20, "partitions": 3, "small_files": 6, "small_file_share": 0.5}
    counts = {"retained_files": 2, "retained_bytes": 3 << 20, "open_instants": 1, "dead_writers": 0, "position": 3}
    others = {"newest_entry": "2026-11-27T03:05:47+00:00", "findings": [], "error": None}
    return {"id": f"id-{name}", "url": f"s3://lake/{name}", "name": name, **sizes, **counts, **others, **values}


def unreadable(name: str) -> Any:
    known = {"id": f"id-{name}", "url": f"s3://lake/{name}", "findings": [finding("unreadable")]}
    error = {"type": "UnsupportedTable", "message": "something else is there"}
    return {**dict.fromkeys(summary(name)), **known, "error": error}


def finding(kind: str, command: str = "tallymark status s3://lake/x") -> Any:
    return {"kind": kind, "text": f"There are {kind}.", "command": command}


def job(**values: Any) -> Any:
    written = {"instant": INSTANT, "operation": "append", "host": "worker-7", "pid": 41, "writer": "dead"}
    marked = {"marker_kind": "batched", "markers": 3, "direct_markers": 1, "segments": 1, "bytes": 385}
    state = {"beat_age_s": 240.0, "markers_s": None, "is_over": False, "decision": None, "position": None, "live": None}
    return {**written, **marked, **state, **values}


LIVE = {"tasks": 48, "markers": 1873, "acks_s": 212.4, "p50_s": 0.0061, "p99_s": None}
LOSS: Any = {"url": "", "instant": INSTANT, "files": 3, "partitions": [{"partition": "month=1", "files": 3}]}


def diff() -> Any:
    files = [{"path": f"month={month}/a.parquet", "rows": 3, "bytes": 900} for month in (1, 2)]
    return {"url": "s3://lake/flights", "start": 1, "end": 3, "added": files, "removed": files[:1]}


def table() -> Any:
    """Every document of the page of a table."""
    sizes = {**golden("files"), "rewritten_bytes": 4096, "rewritten_per_byte": 0.8}
    each = {"partition": "month=1", "files": 2, "bytes": 1968, "small_files": 2, "small_bytes": 1968}
    return {
        "status": golden("status"),
        "summary": summary("flights", dead_writers=1, findings=[finding("dead writer"), finding("small files")]),
        "timeline": golden("timeline"),
        "sizes": sizes,
        "partitions": {"url": "", "position": 3, "partitions": [each], "next": None},
        "jobs": {"url": "", "at": "", "jobs": [job(), job(instant="20261127030550000", writer="alive")]},
        "diff": diff(),
    }


def hostile(document: Any, key: str = "") -> Any:
    """The document with script in every text, each another, but the kinds of findings, which no table determines."""
    if isinstance(document, dict):
        return {name: hostile(value, name) for name, value in document.items()}
    if isinstance(document, list):
        return [hostile(each) for each in document]
    return f"{HOSTILE}{next(_numbers)}" if isinstance(document, str) and key != "kind" else document
