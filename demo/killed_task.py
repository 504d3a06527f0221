"""Step 1: a year of flights is written while one of the tasks is killed."""

from demo.flights import FLIGHTS, PARTITION_BY, by_day
from demo.killer import KilledTask, TaskKiller
from demo.scene import Scene
from demo.storage import Storage, attempt_of, footer_rows

DAYS = 365
TASKS = 4


def tell(scene: Scene) -> None:
    with scene.step(1, f"Write {FLIGHTS:,} flights, one file a day, and kill one task half way"):
        scene.checks.equal("flights in the input", scene.expected.num_rows, FLIGHTS)
        before = scene.look()
        with TaskKiller(scene.table) as killer:
            result = scene.write("write the year", by_day(scene.flights, tasks=TASKS), mode="append", by=PARTITION_BY)
        after = scene.look()
        killed = killer.killed
        scene.checks.that("a task was killed (SIGKILL) with a file open", killed is not None, _victim(killed))
        if killed is not None:
            scene.show_storage({"before": before, "task killed": killed.storage, "after the commit": after})
            _show_attempts(scene, killed, after)
            _check_attempts(scene, killed, after)
        scene.checks.equal("files committed, one for each day", result.files, DAYS)
        rows = footer_rows(scene.table, after.data)
        scene.checks.equal("rows in the files, as their Parquet footers say", rows, FLIGHTS)
        scene.checks.at_rest(after)


def _check_attempts(scene: Scene, killed: KilledTask, after: Storage) -> None:
    unmarked = killed.storage.data - set(killed.storage.markers)
    scene.checks.equal("data files on storage without a marker, at that moment", len(unmarked), 0)
    winner = _winner(killed, after)
    left = sum(attempt_of(path) == killed.attempt for path in after.data)
    scene.checks.equal("files of the killed attempt on storage after the commit", left, 0)
    days = {path.rpartition("/")[0] for path in killed.marked}
    won = {path.rpartition("/")[0] for path in after.committed if attempt_of(path) == winner}
    scene.checks.that(
        "a second attempt wrote all days of the killed one", bool(days) and days <= won, f"{len(won)} days"
    )


def _show_attempts(scene: Scene, killed: KilledTask, after: Storage) -> None:
    winner = _winner(killed, after)
    scene.report.table(
        ["attempt of the same task", "markers", "files when killed", "files after the commit"],
        [
            (f"{killed.attempt} (killed)", len(killed.marked), len(killed.published), _count(after, killed.attempt)),
            (f"{winner} (won)", "-", _count(killed.storage, winner), _count(after, winner)),
        ],
    )


def _winner(killed: KilledTask, after: Storage) -> str:
    """Return the attempt whose files were committed, of the same task of the same stage."""
    task = killed.attempt.rpartition("-")[0]
    attempts = {attempt_of(path) for path in after.committed}
    return next((attempt for attempt in attempts if attempt.rpartition("-")[0] == task), "none")


def _count(storage: Storage, attempt: str) -> int:
    return sum(attempt_of(path) == attempt for path in storage.data)


def _victim(killed: KilledTask | None) -> str:
    if killed is None:
        return "no task was caught writing"
    return f"process {killed.pid}, {len(killed.published)} of its {len(killed.marked)} files in place"
