from tests.cli.scene import data_files, run, run_json, write


def test_clean_ends_dead_writers_and_counts_what_it_swept(abandoned):
    document = run_json("clean", abandoned.folder)
    assert [ended["instant"] for ended in document["ended"]] == [abandoned.instant]
    assert document["fences_swept"] == 0
    assert data_files(abandoned.folder) == abandoned.committed


def test_clean_page_of_a_table_in_order_says_so(tmp_path):
    write(tmp_path, 1)
    assert run("clean", tmp_path).stdout.splitlines() == [
        "No instant to end: no dead writer has left anything.",
        "0 replaced files, 0 bytes, in 0 partitions.",
        "0 fences.",
    ]
