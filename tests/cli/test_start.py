import subprocess
import sys

import pytest

import tallymark
from tallymark.engine.documents.document import ErrorDocument, keys
from tallymark.engine.documents.rollback import RollbackDocument
from tallymark.engine.documents.timeline import TimelineDocument
from tests.cli.scene import run

COMMANDS = (
    *("status", "timeline", "markers", "rollback", "clean", "checkpoint", "doctor"),
    *("files", "explain", "plan", "report"),
)
HEAVY = ("pyspark", "pyarrow", "trio", "asyncio", "rich")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["status", "--help"], ["doctor", "--help"], ["--version"]], ids=" ".join
)
def test_help_and_version_import_nothing_heavy(arguments):
    program = (
        "import sys\n"
        "from tallymark.cli import main\n"
        f"main({arguments}, standalone_mode=False)\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_version_is_the_library_s():
    assert run("--version").stdout == f"tallymark {tallymark.__version__}\n"


def test_every_command_is_listed():
    page = run("--help").stdout
    assert all(f"\n  {command} " in page for command in COMMANDS)


def test_help_of_a_command_names_the_keys_of_its_documents():
    words = " ".join(run("markers", "--help").stdout.split())
    assert "With --json: {url, instant, markers: [{path, io}]}." in words
    assert "a line a look: {url, at, instants: [{instant, operation, marker_kind, markers," in words


def test_keys_of_nested_documents_show_lists_and_objects():
    assert keys(ErrorDocument) == "{error: {type, message}}"
    assert "scope: {all, partitions, prefixes}, files_added" in keys(TimelineDocument)
    assert keys(RollbackDocument) == "{url, dry_run, ended: [{instant, outcome, marked, fences}]}"
