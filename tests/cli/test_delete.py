from tests.cli.scene import data_files, run, run_json, write


def test_a_dry_run_names_the_files_and_changes_nothing(tmp_path):
    write(tmp_path, 1, 2)
    before = data_files(tmp_path)
    page = run("delete", tmp_path, "--where", "month = 1 OR flight = 200", "--dry-run").stdout
    assert page.startswith(
        "Dry run: nothing has been changed. A delete would do this:\n4 rows deleted.\n1 files removed"
    )
    assert all(path in page for path in before)
    document = run_json("delete", tmp_path, "--where", "month = 1 OR flight = 200", "--dry-run")
    assert {file["path"]: (file["deleted"], file["rows"]) for file in document["files"]} == {
        path: (3, 3) if "month=1" in path else (1, 3) for path in before
    }
    assert (document["dry_run"], document["instant"], document["position"]) == (True, None, 1)
    assert data_files(tmp_path) == before
    assert run_json("status", tmp_path)["position"] == 1


def test_a_delete_removes_the_rows_once_per_txn(tmp_path):
    write(tmp_path, 1, 2)
    arguments = ("delete", tmp_path, "--where", "flight < 102", "--txn", "gdpr:7")
    assert run(*arguments).stdout.startswith("2 rows deleted.\n0 files removed whole, 0 B.\n1 files rewritten, ")
    write(tmp_path, 1)
    assert run(*arguments).stdout.startswith(
        "Committed before; nothing was written. That delete has done this:\n2 rows"
    )
    assert run_json("status", tmp_path)["rows"] == 7


def test_a_where_that_does_not_fit_and_a_txn_of_a_dry_run_are_refused(tmp_path):
    write(tmp_path, 1)
    result = run("delete", tmp_path, "--where", "mont = 1")
    assert (result.exit_code, result.stderr) == (
        1,
        "tallymark: where='mont = 1', character 1: 'mont' is not a column; is it 'month'?\n",
    )
    assert run("delete", tmp_path).exit_code == 2
    for option in (["--txn", "a:1"], ["--purge"]):
        assert run("delete", tmp_path, "--where", "month = 1", "--dry-run", *option).exit_code == 2


def test_a_purge_deletes_older_versions(tmp_path):
    write(tmp_path, 1, 2, readers="table")
    before = data_files(tmp_path)
    document = run_json("delete", tmp_path, "--where", "flight < 102", "--purge")
    assert (document["deleted"], document["pending"]) == (2, None)
    assert len(before - data_files(tmp_path)) == 1
