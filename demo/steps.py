"""The five steps of the demo, each with what it checks."""

import sys
import time
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pyarrow.compute as pc

import tallymark
from demo.flights import FLIGHTS, PARTITION_BY, by_day, corrected_month, with_corrected_month
from demo.kill import end, kill_while_writing, task_killer
from demo.readers import READERS, differences, duckdb_rows, hudi_rows
from demo.scene import MarkerCost, Scene
from demo.storage import Storage, attempt_of, instant_of

DAYS = 365
TASKS = 4
FEBRUARY, JULY = 2, 7
FILES_BEFORE_DEATH = 100
"""Published files of a write when one of its processes is killed: about half of what its first tasks write."""
DRIVER_WAIT_S = 120.0
"""A driver starts Spark and writes 100 files in about 15 s."""
MARKERS_PER_PUT = 4
"""The least that passes: low enough for the small writes of this demo on any machine."""


def killed_task(scene: Scene) -> None:
    report = scene.report
    with report.step(f"Write {FLIGHTS:,} flights, one file per day, and kill one task half way"):
        report.check_equal("flights in the input", scene.expected.num_rows, FLIGHTS)
        before = scene.storage()
        with task_killer(scene.table, after_files=FILES_BEFORE_DEATH) as moments:
            rows = by_day(scene.flights, tasks=TASKS)
            result = scene.write("write the year", rows, mode="append", by=PARTITION_BY)
        after = scene.storage()
        report.check("a task was killed (SIGKILL) with a file open", bool(moments), "yes" if moments else "no")
        for killed in moments:
            scene.show_storage(before=before, task_killed=killed, after_the_commit=after)
            _check_attempts(scene, killed, after)
        report.check_equal("files committed, one per day", result.files, DAYS)
        report.check_equal("rows in the files, by their Parquet footers", after.rows(after.data), FLIGHTS)
        scene.check_at_rest(after)


def _check_attempts(scene: Scene, killed: Storage, after: Storage) -> None:
    """Check that the killed attempt, the only one with markers and without a committed file, left nothing."""
    check_equal = scene.report.check_equal
    check_equal("data files without a marker at that moment", len(killed.data - killed.markers), 0)
    dead = {attempt_of(path) for path in killed.markers} - {attempt_of(path) for path in after.committed}
    check_equal("attempts with markers then and without a committed file", len(dead), 1)
    written = {path for path in killed.data if attempt_of(path) in dead}
    check_equal("files of the killed attempt in the table", len(written & after.data), 0)
    days = {Path(path).parent for path in killed.markers if attempt_of(path) in dead}
    replaced = {Path(path).parent for path in after.committed - killed.data}
    claim = "a second attempt wrote all days of the killed one"
    scene.report.check(
        claim, bool(days) and days <= replaced, f"{len(days)} days, {len(written)} of them published when it was killed"
    )


def corrected_february(scene: Scene) -> None:
    with scene.report.step("Replace February by corrected rows (dynamic overwrite), and nothing else"):
        before = scene.storage()
        february = before.in_month(FEBRUARY)
        fingerprints = before.fingerprints(before.data - february)
        _correct(scene, FEBRUARY, "February, corrected")
        after = scene.storage()
        scene.show_storage(before=before, after=after)
        replaced = len(february - after.data)
        scene.report.check_equal("files replaced, all of February", replaced, len(february))
        _check_untouched(scene, after, fingerprints)
        rows = after.rows(after.in_month(FEBRUARY))
        expected = scene.expected.filter(pc.field("month") == FEBRUARY).num_rows
        scene.report.check_equal("rows of February", rows, expected)
        scene.check_at_rest(after)


def killed_driver(scene: Scene) -> None:
    report = scene.report
    with report.step("Kill a driver in the middle of another overwrite, and let the next write recover"):
        before = scene.storage()
        fingerprints = before.fingerprints(before.data - before.in_month(JULY))
        with report.working("a second driver starts a separate Spark, overwrites all 365 days, and is killed"):
            dead = _kill_a_driver(scene)
        claim = "a driver, its JVM and its workers were killed (SIGKILL) with files open"
        report.check(claim, dead is not None, "yes" if dead else "no; see driver.log")
        if dead is None:
            return
        _show_readers_beside_dead_files(scene)
        left = dead.data - before.data
        report.check_equal("entries that it added to the commit log", _entries(dead) - _entries(before), 0)
        report.check("it left uncommitted files", bool(left), f"{len(left)} data files")
        report.check_equal("of these, files without a marker on storage", len(left - dead.markers), 0)
        report.check_equal("reservations left open", len(dead.of_kind("reservation")), 1)
        report.check_equal("committed files missing", len(before.data - dead.data), 0)
        segments = len(dead.of_kind("segment"))
        scene.costs.append(MarkerCost("by the killed driver", len(dead.markers), segments, segments))
        _correct(scene, JULY, "July, corrected")
        after = scene.storage()
        scene.show_storage(before=before, driver_killed=dead, after_the_next_write=after)
        report.check_equal("new log entries, its rollback and the commit", _entries(after) - _entries(dead), 2)
        instants = {instant_of(path) for path in left}
        found = [path for path in after.files if any(instant in path for instant in instants)]
        report.check_equal("files of the dead driver left anywhere on storage", len(found), 0)
        _check_untouched(scene, after, fingerprints)
        scene.check_at_rest(after)


def _kill_a_driver(scene: Scene) -> Storage | None:
    scratch = scene.scratch / "driver"
    scratch.mkdir()
    command = [sys.executable, "-m", "demo.driver", str(scene.source), str(scene.table), str(scratch)]
    deadline = time.monotonic() + DRIVER_WAIT_S

    def ended(pause_s: float) -> bool:
        with suppress(psutil.TimeoutExpired):
            driver.wait(pause_s)
        return not driver.is_running() or time.monotonic() > deadline

    with (scene.scratch / "driver.log").open("wb") as log:
        driver = psutil.Popen(command, cwd=Path(__file__).parent.parent, stdout=log, stderr=log)
        try:
            return kill_while_writing(lambda: [driver], scene.table, after_files=FILES_BEFORE_DEATH, ended=ended)
        finally:
            end([driver])


def _show_readers_beside_dead_files(scene: Scene) -> None:
    """Show that files of a dead writer are not part of the table, since the log decides commits."""
    wanted = scene.expected.num_rows
    snapshot = anyio.run(tallymark.open_table(str(scene.table)).snapshot, backend="trio").rows
    hudi = hudi_rows(scene.table).num_rows
    folder = len(duckdb_rows(scene.table))
    scene.report.line("Rows that readers count beside the dead driver's files:")
    scene.report.table(
        ["reader", "rows", "too many", "note"],
        [
            ("tallymark snapshot", snapshot, snapshot - wanted, "committed files only"),
            ("hudi-rs", hudi, hudi - wanted, "committed files only"),
            ("DuckDB on the plain folder", folder, folder - wanted, "right only at rest"),
        ],
    )
    scene.report.check_equal("rows of the tallymark snapshot beside the dead driver's files", snapshot, wanted)
    scene.report.check_equal("rows that hudi-rs counts beside the dead driver's files", hudi, wanted)


def four_readers(scene: Scene) -> None:
    with scene.report.step("Read the table with four readers and compare each row with the input"):
        rows: list[tuple[str, int, int, int, str]] = [("the input, corrected", scene.expected.num_rows, 0, 0, "")]
        for name, read in READERS.items():
            started = time.monotonic()
            with scene.report.working(name):
                found = read(scene.spark, scene.table)
            seconds = f"{time.monotonic() - started:.1f}"
            missing, surplus = differences(found, scene.expected)
            rows.append((name, found.num_rows, missing, surplus, seconds))
            seen = f"{missing:,} missing, {surplus:,} not in the input"
            claim = f"{name}: the input's rows, all {scene.expected.num_columns} columns"
            scene.report.check(claim, not missing and not surplus, seen)
        scene.report.table(["reader", "rows", "missing", "not in the input", "seconds"], rows)


def marker_costs(scene: Scene) -> None:
    with scene.report.step("Compare the cost of the markers with one object per marker"):
        markers, puts = sum(cost.markers for cost in scene.costs), sum(cost.puts for cost in scene.costs)
        total = MarkerCost("all", markers, puts, sum(cost.objects for cost in scene.costs))
        rows = [(*cost, f"{cost.markers / max(cost.puts, 1):.1f} x") for cost in (*scene.costs, total)]
        scene.report.table(["write", "markers", "puts", "objects", "fewer puts"], rows)
        claim = f"at least {MARKERS_PER_PUT} times fewer puts than markers"
        scene.report.check(claim, markers >= MARKERS_PER_PUT * puts > 0, f"{puts:,} for {markers:,}")
        scene.check_at_rest(scene.storage())


STEPS = (killed_task, corrected_february, killed_driver, four_readers, marker_costs)


def _correct(scene: Scene, month: int, name: str) -> None:
    scene.write(name, by_day(corrected_month(scene.flights, month), tasks=2), mode="overwrite")
    scene.expected = with_corrected_month(scene.expected, month)


def _check_untouched(scene: Scene, after: Storage, fingerprints: dict[str, tuple[str, int, int]]) -> None:
    same = len(fingerprints.items() & after.fingerprints(fingerprints).items())
    scene.report.check_equal("files of other months with the same bytes, time and inode", same, len(fingerprints))


def _entries(storage: Storage) -> int:
    return len(storage.of_kind("log"))
