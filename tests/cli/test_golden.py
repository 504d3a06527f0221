"""The ``--json`` document of each command, as a file in ``golden/``: keys, their order, and values.

Commands that only read leave the table as it was.

What differs between two runs is masked: instants, file names, sizes of files, ages, times and this machine.
"""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.scene import data_files, die_writing, run, write

GOLDEN = Path(__file__).parent / "golden"

MASKED = {
    *("host", "pid", "detail", "file_system", "mount_point", "remarks"),
    *("beat_age_s", "seconds", "median_s", "p99_s", "interval_s", "clock_skew_s", "p50", "p95", "largest"),
    *("bytes", "free_bytes", "bytes_written", "rewritten_bytes", "removed_bytes", "inserted_bytes"),
    *("retained_bytes", "small_bytes", "looked_up_bytes", "newest_entry"),
}

WRITING = ("clean", "delete", "rollback", "checkpoint")


@dataclass(frozen=True, slots=True)
class Sample:
    """Four commits, and an open instant whose writer is dead."""

    folder: Path
    instant: str


@pytest.fixture(scope="module")
def sample_once(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    folder = tmp_path_factory.mktemp("golden") / "flights"
    write(folder, 1)
    write(folder, 1, 2, mode="overwrite")
    write(folder, 3, txn="load:7")
    return Sample(folder, die_writing(folder, 1, 2))


@pytest.fixture
def sample(sample_once: Sample, tmp_path: Path) -> Sample:
    """The test's own copy."""
    return Sample(shutil.copytree(sample_once.folder, tmp_path / "flights"), sample_once.instant)


def stamps(folder: Path) -> dict[Path, int]:
    """Every file, and when it was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def masked(key: str, value: Any) -> Any:
    """Return the value without what differs between runs; numbers and texts that are masked keep their type."""
    if key in MASKED:
        return None if value is None else f"<{type(value).__name__}>"
    if isinstance(value, dict):
        return {name: masked(name, each) for name, each in value.items()}
    if isinstance(value, list):
        return [masked("", each) for each in value]
    if isinstance(value, str):
        value = re.sub(r"[0-9a-f-]{36}(-\d)?_[\w-]+_\d{17}", "<file>", value)
        return re.sub(r"\d{17}", "<instant>", value)
    return value


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "timeline",
        "markers INSTANT",
        "files",
        "explain FILE",
        "plan --mode overwrite --partition month=1",
        "clean",
        "delete --where flight>=201",
        "rollback",
        "checkpoint",
        "doctor --seconds 200",
        "accept-loss --yes",
    ],
)
def test_the_document_of_a_command_is_the_golden_one(words: str, sample: Sample) -> None:
    command, *others = words.split()
    before = stamps(sample.folder)
    (file,) = [path for path in data_files(sample.folder) if "month=3" in path]
    given = {"INSTANT": sample.instant, "FILE": file}
    result = run(command, sample.folder, *(given.get(word, word) for word in others), "--json")
    assert result.exit_code == 0, result.stderr
    document = masked("", json.loads(result.stdout))
    shown = json.dumps(document, indent=2).replace(str(sample.folder), "<folder>")
    assert f"{shown}\n" == (GOLDEN / f"{command}.json").read_text()
    assert (stamps(sample.folder) == before) is (command not in WRITING)


def test_the_document_of_a_failure_is_the_golden_one(tmp_path: Path) -> None:
    shown = run("status", tmp_path / "missing", "--json").stderr.splitlines()[-1].replace(str(tmp_path), "<folder>")
    assert f"{shown}\n" == (GOLDEN / "failure.json").read_text()
