import json

import pytest

from tests.cli.scene import run

ON_A_TABLE = [
    ["status"],
    ["timeline"],
    ["markers", "20130101000000000"],
    ["rollback"],
    ["clean"],
    ["checkpoint"],
    ["files"],
    ["explain", "a.parquet"],
    ["plan", "--mode", "append"],
]


def arguments(command: list[str], url: object) -> list[str]:
    name, *rest = command
    return [name, str(url), *rest]


@pytest.mark.parametrize("command", ON_A_TABLE, ids=" ".join)
def test_a_failed_command_says_why_in_one_line_and_prints_nothing_else(command, tmp_path):
    result = run(*arguments(command, tmp_path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"tallymark: {tmp_path.as_uri()} holds no table yet; the first write creates it\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ON_A_TABLE, ids=" ".join)
def test_with_json_the_last_line_on_stderr_is_the_error_as_an_object(command, tmp_path):
    result = run(*arguments(command, tmp_path), "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    line, last = result.stderr.splitlines()
    error = json.loads(last)["error"]
    assert error["type"] == "UnsupportedTable"
    assert line == f"tallymark: {error['message']}"


def test_something_else_at_the_url_is_refused_by_name(tmp_path):
    (tmp_path / "report.csv").write_text("not a table")
    result = run("status", tmp_path)
    assert result.exit_code == 1
    assert "holds no table, and is not empty (there is report.csv)" in result.stderr


def test_an_unknown_scheme_is_an_answer_not_a_traceback():
    result = run("status", "s4://bucket/table")
    assert result.exit_code == 1
    assert result.stderr.startswith("tallymark: 's4://bucket/table': unknown scheme 's4'")


def test_a_message_of_several_lines_is_printed_on_one(tmp_path):
    folder = tmp_path / "a\nb"
    folder.mkdir()
    (folder / "x\ny").touch()
    result = run("status", folder)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        ["status"],
        ["timeline", "url", "--last", "0"],
        ["markers", "url"],
        ["status", "url", "--all"],
        ["compact", "url"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_ends_with_exit_code_2(wrong):
    result = run(*wrong)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr
