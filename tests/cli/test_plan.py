import pytest

from tests.cli.scene import data_files, run, run_json, write


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
    assert "the partitions of its rows" in refused.stderr


def test_the_page_shows_facts_and_partitions(tmp_path):
    write(tmp_path, 1, 2)
    page = run("plan", tmp_path, "--mode", "overwrite", "--partition", "month=1", "--txn", "job:1").stdout
    for fact in ("overwrite of month=1", "1 files, 3 rows", "replaced", "unknown: the input was not described"):
        assert fact in page
    assert page.rstrip().endswith("Nothing was changed.")


def test_a_txn_that_was_committed_says_so(tmp_path):
    write(tmp_path, 1, txn="job:1")
    assert run_json("plan", tmp_path, "--mode", "append", "--txn", "job:1")["committed_at"] == 1
    assert "would do nothing" in run("plan", tmp_path, "--mode", "append", "--txn", "job:1").stdout


def test_with_rows_and_sizing_the_page_shows_what_is_filled_and_rewritten(tmp_path):
    written = write(tmp_path / "flights", 1)
    (small,) = data_files(tmp_path / "flights")
    (tmp_path / "rows").write_text("month=1\t500\nmonth=2\t40\t480\n\n")
    words = ("plan", tmp_path / "flights", "--mode=append", f"--partitions-file={tmp_path / 'rows'}")
    document = run_json(*words, "--sizing=rewrite_budget=100", "--sizing=policy=balanced")
    filled, new = document["partitions"]
    assert (document["rows"], document["sizing"]["filled_files"]) == (540, 1)
    assert document["sizing"]["rewritten_bytes"] == filled["rewritten_bytes"] == written.bytes
    assert filled["planned"][0]["fill"] == {"path": small, "rows": 3, "bytes": written.bytes}
    assert (new["change"], new["planned"][0]["rows"], new["planned"][0]["fill"]) == ("new", 40, None)
    page = run(*words, "--sizing=default", "--sizing=rewrite_budget=100").stdout
    for fact in ("would fill", "rewritten for each one inserted", f"{written.bytes:,} B to", "month=2"):
        assert fact in page
    off = run_json(*words)
    assert (off["sizing"], off["rows"], [each["planned"] for each in off["partitions"]]) == (None, 540, [None, None])


def test_of_an_overwrite_the_page_shows_what_goes_and_the_sizes_that_come(tmp_path):
    write(tmp_path / "flights", 1)
    (tmp_path / "rows").write_text("month=1\t500\t90000000\n")
    words = ("--mode=overwrite", "--partition-overwrite=dynamic", f"--partitions-file={tmp_path / 'rows'}")
    page = run("plan", tmp_path / "flights", *words, "--sizing=default").stdout
    heading, *_ = (line for line in page.splitlines() if "files removed" in line)
    shown = [name for name in ("files added", "sizes", "filled", "rewritten") if name in heading]
    assert shown == ["files added", "sizes"]
    (row,) = (line for line in page.splitlines() if line.strip().startswith("month=1"))
    assert "MiB" in row


@pytest.mark.parametrize("lines", ["month=1\tmany", "month=1\t1\t2\t3", "month=1\t-1"])
def test_a_line_that_is_no_partition_with_its_rows_is_refused(tmp_path, lines):
    write(tmp_path / "flights", 1)
    (tmp_path / "rows").write_text(lines)
    result = run("plan", tmp_path / "flights", "--mode=append", f"--partitions-file={tmp_path / 'rows'}")
    assert result.exit_code == 2
    assert "a tab and its rows" in result.stderr


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("", "Missing option '--mode'"),
        ("--mode=upsert", "'upsert' is not one of"),
        ("--mode=append --price=put=5", "No such option"),
        ("--mode=append --sizing=on", "say default, or max_file_bytes|"),
        ("--mode=append --sizing=small_file_bytes=-1", "small_file_bytes is a whole number, 0 or more"),
        ("--mode=append --sizing=policy=best", "policy is 'balanced' or 'hudi'"),
        ("--mode=append --sizing=max_file_bytes=many", "max_file_bytes is a whole number, 1 or more"),
    ],
)
def test_a_wrong_call_ends_with_exit_code_2_and_its_reason(tmp_path, wrong, why):
    result = run("plan", tmp_path, *wrong.split())
    assert result.exit_code == 2
    assert why in " ".join(result.stderr.split())
