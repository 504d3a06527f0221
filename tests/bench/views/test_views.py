import json

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main
from tallymark.bench.views.lookup import Lookup
from tallymark.bench.views.targets import LookupTarget, WrongAnswer


@pytest.mark.release
def test_every_side_answers_and_follows_and_nothing_remains(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    (tmp_path / "mine").write_text("not the harness's")
    saved = tmp_path.parent / "views.json"
    arguments = ["views", "--quick", "--files", "300", "--folder", str(tmp_path), "--json", str(saved)]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    lookup_table, followed = json.loads(saved.read_text())["tables"]
    rows = {row["title"]: row for row in lookup_table["rows"]}
    assert {title for title, row in rows.items() if row["many_p50_s"]} == {
        *(f"Tallymark, {store}, served" for store in ("memory", "spillable", "key-value")),
        "listing a local disk",
    }
    assert rows["Tallymark, S3, 30 ms a request"]["requests"].count("GET") == 1
    assert all("/no/such/java" in reason for title, reason in lookup_table["absent"].items() if "Hudi" in title)
    assert {(row["files"], row["growth"]) for row in followed["rows"]} == {(1, None), (10, None)}


def test_an_answer_with_too_few_files_is_an_error():
    class Forgetful(LookupTarget):
        def look_up(self, lookup):
            return 3

    target = Forgetful({}, 1)
    assert target.check(Lookup("p=1", None, 3)) == 3
    with pytest.raises(WrongAnswer):
        target.check(Lookup("p=1", None, 4))
