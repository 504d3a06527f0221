"""Our side of each trial that needs neither a Java nor another's jar, on a small scale."""

import json
import socket
import threading

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main
from tallymark.bench.defects import run as defects
from tallymark.bench.defects import stored
from tallymark.bench.defects.command import NAMES
from tallymark.bench.defects.proxy import losing_proxy

OURS = ("restart", "lost answer", "kills", "full storage", "partitions")


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("defects")
    (folder / "disk").mkdir()
    asked = [word for name in OURS for word in ("--trial", name)]
    options = ("--ours", "--kills", "3", "--folder", str(folder / "disk"), "--json", str(folder / "answer.json"))
    result = CliRunner().invoke(main, ["defects", *asked, *options])
    assert result.exit_code == 0, result.output
    assert [*(folder / "disk").iterdir()] == []
    document = json.loads((folder / "answer.json").read_text())
    return {name: [row for row in document["findings"] if row["trial"] == name] for name in OURS}


@pytest.mark.parametrize("name", OURS)
def test_what_is_suspected_of_hudis_server_does_not_come_true_of_ours(findings, name):
    assert [row["shown"] for row in findings[name]] == ["no"] * len(findings[name]) != []


def test_every_marker_that_was_acked_before_and_after_a_restart_has_its_own_line(findings):
    [row] = findings["restart"]
    assert row["counts"]["lines_after"] == row["counts"]["named_by_third"] == row["counts"]["acked"] == 300
    assert row["counts"]["lines_of_none"] == 0


def test_the_kills_hit_servers_that_had_acked_something(findings):
    [row] = findings["kills"]
    assert row["counts"]["lives"] == 3
    assert row["counts"]["acked"] >= 3
    assert row["counts"]["missing"] == row["counts"]["unnamed"] == 0


def test_an_answer_is_lost_each_time_and_the_marker_is_given_all_the_same(findings):
    [row] = findings["lost answer"]
    assert row["counts"] == {"durable": 20, "true": 20, "false": 0, "no_answer": 0}


def test_what_full_storage_refuses_is_not_acked_and_can_be_asked_for_again(findings):
    [row] = findings["full storage"]
    assert (row["counts"]["acked_during"], row["counts"]["acked_again"]) == (0, 20)
    assert row["counts"]["missing_of_before"] == 0


def test_where_hudis_server_cannot_be_fetched_it_is_said_to_be_not_tried(tmp_path, monkeypatch):
    def unreachable(*_):
        raise OSError("no network\nand more")

    monkeypatch.setattr(defects, "find_spec", lambda _: object())
    monkeypatch.setattr(defects, "java", lambda: "java")
    monkeypatch.setattr(defects, "fetch", unreachable)
    answer = defects.run(["restart"], tmp_path, kills=1)
    assert next((row.shown, row.seen) for row in answer.findings) == ("not tried", "it cannot be fetched: no network")
    assert [row.shown for row in answer.findings[1:]] == ["no"]


def test_without_a_java_hudis_server_is_said_to_be_not_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(defects, "java", lambda: None)
    answer = defects.run(["detector"], tmp_path, kills=1)
    assert [row.shown for row in answer.findings] == ["not tried", "not tried"]
    assert "a Java" in answer.findings[0].seen


def test_the_command_offers_every_trial_in_its_order():
    assert tuple(defects.TRIALS) == NAMES


def test_lines_are_read_whether_they_have_been_finished_or_not(tmp_path):
    folder = stored.folder(tmp_path, "7")
    folder.mkdir(parents=True)
    (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (folder / "MARKERS0").write_text("a.marker.CREATE\nb.marker.CREATE\n")
    (folder / "MARKERS12").write_text("c.marker.CRE")
    assert stored.lines(tmp_path, "7") == {"a.marker.CREATE", "b.marker.CREATE", "c.marker.CRE"}


def test_the_proxy_loses_one_answer_and_the_question_has_come_through():
    with socket.create_server(("127.0.0.1", 0)) as listener, losing_proxy(listener.getsockname()[1]) as proxy:
        heard = []

        def serve():
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    heard.append(connection.recv(100))
                    connection.sendall(b"yes")

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        proxy.lose_the_next()
        assert [_ask(proxy.port), _ask(proxy.port)] == [b"", b"yes"]
        serving.join(10)
    assert heard == [b"?", b"?"]
    assert proxy.lost.is_set()


def _ask(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"?")
        return connection.recv(100)
