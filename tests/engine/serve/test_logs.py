"""Log lines of a service: one object per line, with what was logged and nothing else."""

import json
import logging

import pytest

from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.logs import AUDIT, configure_logs, no_request, request_id
from tallymark.engine.serve.settings import ServeSettings

pytestmark = pytest.mark.usefixtures("kept_loggers")


def test_a_line_has_the_event_its_fields_and_the_request(capsys):
    configure_logs(ServeSettings(log_format="json"))
    events = EventLog("tallymark.x")
    with request_id("") as made, request_id("a client's\n") as other:
        events.info("thing.happened", url='s3://b/ä "', count=3, part=0.5, reason=OSError("no\nroom"), is_last=None)
        logging.getLogger("other").warning("plain %s", 5)
        with request_id("mine-7"):
            events.warning("thing.failed")
            with no_request():
                events.warning("thing.shared")
        try:
            raise ValueError("x")
        except ValueError:
            events.fault("thing.broke")
    events.debug("thing.unseen")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line.pop("time")[-6:] for line in lines] == ["+00:00"] * 5
    first, second, third, shared, fourth = lines
    assert "request" not in shared
    assert first == {
        "level": "info",
        "logger": "tallymark.x",
        "event": "thing.happened",
        "request": other,
        "url": 's3://b/ä "',
        "count": 3,
        "part": 0.5,
        "reason": "OSError: no\nroom",
    }
    assert second == {"level": "warning", "logger": "other", "message": "plain 5", "request": other}
    assert (third["request"], "ValueError: x" in fourth["exception"]) == ("mine-7", True)
    assert made != other
    assert len(made) == len(other) == 16


def test_a_line_of_text_ends_with_the_request(capsys):
    configure_logs(ServeSettings(log_level="warning"))
    with request_id("mine-7"):
        EventLog("tallymark.x").warning("thing.failed", count=3)
        EventLog("tallymark.x").info("thing.unseen")
    assert capsys.readouterr().err.rstrip().endswith("WARNING tallymark.x thing.failed count=3 request=mine-7")


def test_the_audit_log_is_opened_again_once_it_was_moved_away(tmp_path, capsys):
    path = tmp_path / "audit.log"
    configure_logs(ServeSettings(log_level="error", audit_log=str(path)))
    events = EventLog(AUDIT)
    events.info("audit.answered", table="a")
    path.rename(tmp_path / "audit.log.1")
    events.info("audit.answered", table="b")
    assert [each.read_text().split()[-1] for each in (tmp_path / "audit.log.1", path)] == ["table=a", "table=b"]
    assert capsys.readouterr().err == ""
    with pytest.raises(InvalidRequest, match="cannot be opened"):
        configure_logs(ServeSettings(audit_log=str(tmp_path / "none" / "audit.log")))
