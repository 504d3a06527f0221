import pytest

from tests.cli.scene import data_files, run, run_json, write


def test_plan_names_what_would_go_and_changes_nothing(tmp_path):
    result = write(tmp_path, 1, 2)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    document = run_json("plan", tmp_path, "--mode", "overwrite")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert (document["position"], document["is_created"], document["committed_at"]) == (1, False, None)
    assert set(document["removed"]) == data_files(tmp_path)
    assert (document["removed_files"], document["removed_rows"], document["removed_bytes"]) == (2, 6, result.bytes)
    assert document["scope"] == {"all": True, "partitions": [], "prefixes": []}
    assert (document["files"], document["requests"], document["cost"]) == (None, None, None)


def test_a_part_of_the_table_is_named_by_its_path(tmp_path):
    write(tmp_path, 1, 2)
    document = run_json("plan", tmp_path, "--mode", "overwrite", "--partition", "month=2")
    assert [each["partition"] for each in document["partitions"]] == ["month=2"]
    guarded = run("plan", tmp_path, "--mode", "overwrite", "--only-partition", "month=2")
    assert guarded.exit_code == 1
    assert "this overwrite replaces the whole table" in guarded.stderr
    wrong = run("plan", tmp_path, "--mode", "overwrite", "--partition", "month=May")
    assert "the column is int32; give a value of that type" in wrong.stderr


def test_partitions_with_rows_come_from_a_file(tmp_path):
    write(tmp_path / "flights", 1, 2)
    (tmp_path / "months").write_text("month=2\n\nmonth=3\n")
    dynamic = ("--mode", "overwrite", "--partition-overwrite", "dynamic")
    document = run_json("plan", tmp_path / "flights", *dynamic, "--partitions-file", tmp_path / "months")
    assert [(each["partition"], each["change"], each["files"]) for each in document["partitions"]] == [
        ("month=2", "replaced", 1),
        ("month=3", "new", 1),
    ]
    refused = run("plan", tmp_path / "flights", *dynamic)
    assert refused.exit_code == 1
    assert "its rows decide" in refused.stderr


def test_the_page_shows_facts_and_partitions(tmp_path):
    write(tmp_path, 1, 2)
    page = run("plan", tmp_path, "--mode", "overwrite", "--partition", "month=1", "--txn", "job:1").stdout
    for fact in ("overwrite of month=1", "1 files, 3 rows", "replaced", "nothing is known of the input"):
        assert fact in page
    assert page.rstrip().endswith("Nothing was changed.")


def test_a_txn_that_was_committed_says_so(tmp_path):
    write(tmp_path, 1, txn="job:1")
    assert run_json("plan", tmp_path, "--mode", "append", "--txn", "job:1")["committed_at"] == 1
    assert "would do nothing" in run("plan", tmp_path, "--mode", "append", "--txn", "job:1").stdout


@pytest.mark.parametrize(
    "wrong",
    [[], ["--mode", "upsert"], ["--mode", "append", "--price", "put=dear"], ["--mode", "append", "--price", "5"]],
)
def test_a_plan_that_was_asked_wrongly_ends_with_exit_code_2(tmp_path, wrong):
    assert run("plan", tmp_path, *wrong).exit_code == 2
