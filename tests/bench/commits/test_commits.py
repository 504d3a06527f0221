import json

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main
from tallymark.bench.commits.measure import CommitRow, Effort, Ground, WrongRows, measure, verbs
from tallymark.bench.commits.sides import ROWS, FloorWriter, Writer
from tallymark.bench.commits.writers import beside
from tallymark.bench.load import Seen
from tallymark.bench.stores import near


def run(*arguments):
    return CliRunner().invoke(main, ["commits", *(str(argument) for argument in arguments)])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [(("--part", "nothing"), "'nothing' is not one of"), (("--writers", "0"), "0 is not in the range")],
)
def test_what_cannot_be_measured_is_refused(arguments, problem):
    result = run(*arguments)
    assert result.exit_code != 0
    assert problem in result.stderr


def measured(folder, *arguments):
    """Return the tables of a run in a folder, of which nothing remains there."""
    (folder / "mine").write_text("not the harness's")
    saved = folder.parent / f"{folder.name}.json"
    result = run("--quick", "--seconds", 0.3, "--folder", folder, "--json", saved, *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [path.name for path in folder.iterdir()] == ["mine"]
    return [table["rows"] for table in json.loads(saved.read_text())["tables"]]


PEERS = ["deltalake", "deltalake + fsync", "pyiceberg", "write + fsync + rename + fsync"]


def test_each_format_commits_to_the_stand_in_and_every_row_is_read(tmp_path):
    rows, ratios = measured(tmp_path, "--part", "writers", "--place", "s3", "--writers", 1)
    assert [row["title"] for row in rows] == ["Tallymark", "deltalake", "pyiceberg"]
    assert [row["title"] for row in ratios] == ["deltalake", "pyiceberg"]
    assert all(row["rows"] == row["committed_rows"] > 2 * ROWS for row in rows)
    assert all(row["requests"] > 5 for row in rows)
    assert [row["requests"] for row in rows] == pytest.approx([sum(row["by_verb"].values()) for row in rows])
    assert all(row["by_verb"]["put"] >= 2 for row in rows)


def test_a_broker_decides_what_writers_of_other_processes_send(tmp_path):
    [rows] = measured(tmp_path, "--part", "broker", "--place", "s3")
    assert [(row["writers"], row["offered"]) for row in rows] == [(8, None), (32, 50.0)]
    assert all(row["commits"] > 8 and row["per_entry"] >= 1 for row in rows)
    assert all(0 < row["service_cpu_s"] < 1 for row in rows)
    assert all(0 < row["by_verb"]["put"] <= 2 for row in rows)


@pytest.mark.release  # a minute, most of which processes take to start
def test_every_part_is_measured_on_a_local_disk(tmp_path):
    appends, rows, ratios, callers, *_ = measured(tmp_path, "--place", "local", "--writers", 2)
    assert [row["title"] for row in appends] == ["Tallymark", *PEERS]
    assert [row["title"] for row in rows] == ["Tallymark", *PEERS]
    assert [row["title"] for row in ratios] == PEERS
    assert [row["writers"] for row in callers] == [8]
    assert all(row["rows"] == row["committed_rows"] > 3 * ROWS for row in (*rows, *callers))
    assert not any(row["requests"] for row in (*rows, *callers))


def test_one_append_is_measured_in_latencies_of_the_stand_in(tmp_path):
    [rows] = measured(tmp_path, "--part", "one-append", "--place", "s3", "--side", "ours", "--latency-ms", 5)
    [row] = rows
    assert row["in_latencies"] == pytest.approx(row["p50_s"] / 0.005)
    assert row["in_latencies"] > 5
    assert (row["over_floor"], row["over_ours"]) == (None, None)


def test_one_append_is_measured_in_times_of_a_synced_file(tmp_path):
    sides = ("--side", "floor", "--side", "ours")
    [[ours, floor]] = measured(tmp_path, "--part", "one-append", "--place", "local", *sides)
    assert ours["over_floor"]["value"] == pytest.approx(ours["p50_s"] / floor["p50_s"])
    assert floor["over_ours"]["value"] == pytest.approx(floor["p50_s"] / ours["p50_s"])
    assert (ours["over_ours"], floor["over_floor"], ours["in_latencies"]) == (None, None, None)


class Forgetful(FloorWriter):
    """Loses a commit."""

    def rows(self):
        return super().rows() - ROWS


def test_a_lost_commit_fails_the_run(tmp_path):
    with near(tmp_path) as place:
        ground = Ground(place, tmp_path, (), Effort(seconds=0.1), lambda text: None)
        with pytest.raises(WrongRows, match=r"Forgetful: .* rows of "):
            measure(ground, Forgetful, ground.load(1), callers=FloorWriter)


class Contended(Writer):
    """Gives up twice before each commit."""

    def _open(self, target):
        self.appended = []

    def _append(self, rows):
        self.appended.append(rows["id"].to_pylist())
        return len(self.appended) % 3 == 0

    def rows(self):
        return 0


def test_a_refused_commit_is_counted_and_its_rows_are_written_again():
    writer = Contended({}, 1)
    writer.ask()
    assert writer.statistics() == {"commits": 2, "refused": 4, "committed": 2 * ROWS}
    first, again, _, second, *_ = writer.appended
    assert first == again
    assert set(first).isdisjoint(second)


def seen(latency_s, within):
    extra = {
        "seconds": 10.0,
        "commits": 3,
        "committed": 400,
        "rows": 400,
        "refused": 1,
        "requests_put": 9,
        "requests_get": 3,
    }
    return Seen(latency_s=latency_s, counted_s=11.0, answered=3, within=within, caller_cpu_s=0.3, extra=extra)


def test_rounds_become_a_row_and_ratios_above_one_are_in_our_favour():
    ours, theirs = seen((0.1, 0.1, 0.4), 3.0), seen((0.2, 0.2, 0.8), 1.5)
    row = CommitRow.of("Tallymark", 4, [ours, ours])
    assert (row.commits_per_s, row.p50_s, row.longest_wait) == (0.3, 0.1, 4.0)
    assert (row.refused, row.rows, row.requests) == (2, 800, 4.0)
    assert verbs(row.by_verb) == "3.0 put, 1.0 get"
    assert row.cpu_s == pytest.approx(0.1)
    [found] = beside({"Tallymark": [ours], "deltalake": [theirs]}, 4)
    assert (found.rate.value, found.p50.value, found.p99.value) == (2.0, 2.0, 2.0)
