"""Step 3: a driver is killed in the middle of an overwrite of the whole year; the next write recovers."""

import subprocess
import sys
from pathlib import Path

import anyio

import tallymark
from demo.flights import by_day, corrected_month, with_corrected_month
from demo.killer import end_session, kill_driver
from demo.readers import duckdb_count, hudi_count
from demo.scene import MarkerBill, Scene
from demo.storage import Storage, fingerprints, instant_of

JULY = 7
FILES_BEFORE_DEATH = 100


def tell(scene: Scene) -> None:
    with scene.step(3, "Kill a driver in the middle of another overwrite, and let the next write tidy up"):
        before = scene.look()
        others = [path for path in before.data if not path.startswith(f"month={JULY}/")]
        prints = fingerprints(before, others)
        with scene.report.working("a second driver starts its own Spark, overwrites all 365 days, and is killed"):
            dead = _killed(scene)
        scene.checks.that(
            "a driver, its JVM and its workers were killed (SIGKILL) with files open",
            dead is not None,
            "as it wrote" if dead is not None else "not caught; see driver.log",
        )
        if dead is None:
            return
        _show_what_readers_see(scene, dead)
        _check_remains(scene, before, dead)
        rows = by_day(corrected_month(scene.flights, JULY), tasks=2)
        scene.write("July, corrected", rows, mode="overwrite")
        scene.expected = with_corrected_month(scene.expected, JULY)
        after = scene.look()
        scene.show_storage({"before": before, "driver killed": dead, "after the next write": after})
        names = _names_of_the_dead(before, dead)
        left = [path for path in after.files if any(name in path for name in names)]
        scene.checks.equal("new log entries, its rollback and the commit", _entries(after) - _entries(dead), 2)
        scene.checks.equal("files of the dead driver left anywhere on storage", len(left), 0)
        untouched = len(prints.items() & fingerprints(after, after.data.intersection(others)).items())
        scene.checks.equal("files of other months with the same bytes, time and inode", untouched, len(others))
        scene.checks.at_rest(after)


def _killed(scene: Scene) -> Storage | None:
    scratch = scene.scratch / "driver"
    scratch.mkdir()
    command = [sys.executable, "-m", "demo.driver", str(scene.source), str(scene.table), str(scratch)]
    root = Path(__file__).parent.parent
    with (scene.scratch / "driver.log").open("wb") as log:
        driver = subprocess.Popen(command, cwd=root, stdout=log, stderr=log, start_new_session=True)
        try:
            return kill_driver(driver, scene.table, after_files=FILES_BEFORE_DEATH)
        finally:
            end_session(driver)


def _show_what_readers_see(scene: Scene, dead: Storage) -> None:
    """Show that files of a dead writer are not part of the table, since the log decides commits."""
    wanted = scene.expected.num_rows
    snapshot = anyio.run(tallymark.open_table(str(scene.table)).snapshot, backend="trio").rows
    hudi = hudi_count(scene.table)
    folder = duckdb_count(scene.table)
    scene.report.say("What readers count while the dead driver's files lie there:")
    scene.report.table(
        ["reader", "rows", "too many", "note"],
        [
            ("tallymark snapshot", snapshot, snapshot - wanted, "committed files only"),
            ("hudi-rs", hudi, hudi - wanted, "committed files only"),
            ("DuckDB on the plain folder", folder, folder - wanted, "right only at rest"),
        ],
    )
    scene.checks.equal("rows of the tallymark snapshot beside the dead driver's files", snapshot, wanted)
    scene.checks.equal("rows that hudi-rs counts beside the dead driver's files", hudi, wanted)


def _check_remains(scene: Scene, before: Storage, dead: Storage) -> None:
    left = dead.data - before.data
    unmarked = left - set(dead.markers)
    scene.checks.equal("entries that it added to the commit log", _entries(dead) - _entries(before), 0)
    scene.checks.that("it left uncommitted files", bool(left), f"{len(left)} data files")
    scene.checks.equal("of these, files without a marker on storage", len(unmarked), 0)
    scene.checks.equal("reservations left open", len(dead.of_kind("reservation")), 1)
    scene.checks.equal("committed files missing", len(before.data - dead.data), 0)
    segments = len(dead.of_kind("segment"))
    scene.bills.append(MarkerBill("by the killed driver", len(dead.markers), segments, segments))


def _entries(storage: Storage) -> int:
    return len(storage.of_kind("log"))


def _names_of_the_dead(before: Storage, dead: Storage) -> set[str]:
    return {instant_of(path) for path in dead.data - before.data}
