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


@pytest.mark.parametrize("command", ON_A_TABLE, ids=" ".join)
def test_a_failed_command_prints_one_line_on_stderr_and_with_json_the_error_as_an_object_after_it(command, tmp_path):
    name, *rest = command
    result = run(name, tmp_path, *rest)
    message = f"{tmp_path.as_uri()} holds no table yet; the first write creates it"
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"tallymark: {message}\n")
    with_json = run(name, tmp_path, *rest, "--json")
    assert (with_json.exit_code, with_json.stdout) == (1, "")
    line, last = with_json.stderr.splitlines(keepends=True)
    assert line == result.stderr
    assert json.loads(last) == {"error": {"type": "UnsupportedTable", "message": message}}
    assert list(tmp_path.iterdir()) == []


def test_something_else_at_the_url_is_refused_by_name(tmp_path):
    (tmp_path / "report.csv").write_text("not a table")
    result = run("status", tmp_path)
    assert result.exit_code == 1
    assert "holds no table, and is not empty (there is report.csv, and no .hoodie/hoodie.properties)" in result.stderr


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
    ("wrong", "why"),
    [
        ("status", "Missing argument 'URL'"),
        ("timeline url --last 0", "'--last'"),
        ("markers url", "Missing argument 'INSTANT'"),
        ("status url --all", "No such option"),
        ("compact url", "No such command"),
    ],
)
def test_a_wrong_call_ends_with_exit_code_2_and_its_reason(wrong, why):
    result = run(*wrong.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr
    assert why in result.stderr
