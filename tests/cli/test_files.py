import trio

from tallymark import open_table
from tests.cli.scene import run, run_json, write
from tests.engine.jobs.filling import appended


def test_what_is_small_and_which_part_is_looked_at_can_be_said(tmp_path):
    write(tmp_path, 1, 2)
    document = run_json("files", tmp_path, "--partition", "month=2", "--small-bytes", "1")
    assert (document["partition"], document["files"], document["small_below"]) == ("month=2", 1, 1)
    assert (document["small_files"], document["most_small"]) == (0, [])


def test_files_say_what_was_rewritten_to_come_to_them_where_anything_was(tmp_path):
    trio.run(appended, open_table(str(tmp_path)), {1: [1, 2]})
    assert "rewritten" not in run("files", tmp_path).stdout
    (first,) = run_json("files", tmp_path)["buckets"]
    trio.run(appended, open_table(str(tmp_path)), {1: [3]})
    document = run_json("files", tmp_path)
    assert document["rewritten_bytes"] == first["bytes"]
    assert document["rewritten_per_byte"] == first["bytes"] / document["bytes"]
    per_byte = f"{first['bytes']:,} B to come to these files, {document['rewritten_per_byte']:.2f} for each byte"
    assert per_byte in run("files", tmp_path).stdout


def test_files_page_shows_a_bar_for_each_size_and_the_partitions_with_most_small_files(tmp_path):
    total = write(tmp_path, 1, 2).bytes + write(tmp_path, 2).bytes
    document = run_json("files", tmp_path)
    assert (document["bytes"], document["small_bytes"], document["small_file_share"]) == (total, total, 1.0)
    found = [(each["partition"], each["small_files"]) for each in document["most_small"]]
    assert found == [("month=2", 2), ("month=1", 1)]
    page = run("files", tmp_path).stdout
    assert "100.0 % of the files" in page
    assert "#" * 40 in page
    assert "month=2" in page


def test_files_page_of_an_empty_part_says_so(tmp_path):
    write(tmp_path, 1)
    assert run("files", tmp_path, "--partition", "month=3").stdout == "No files below month=3 at position 1.\n"
