from tests.cli.scene import data_files, run, run_json, write


def test_markers_of_a_dead_writer_name_all_that_it_left(abandoned):
    document = run_json("markers", abandoned.folder, abandoned.instant)
    assert (document["url"], document["instant"]) == (abandoned.folder.as_uri(), abandoned.instant)
    assert {marker["path"] for marker in document["markers"]} == data_files(abandoned.folder) - abandoned.committed
    assert {marker["io"] for marker in document["markers"]} == {"CREATE"}


def test_markers_page_lists_each_data_file(abandoned):
    page = run("markers", abandoned.folder, abandoned.instant).stdout
    assert all(path in page for path in data_files(abandoned.folder) - abandoned.committed)
    assert f"2 markers of instant {abandoned.instant}." in page


def test_markers_of_an_instant_that_is_over_are_refused_not_empty(tmp_path):
    instant = write(tmp_path, 1).instant
    result = run("markers", tmp_path, instant)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"instant '{instant}' is not open" in result.stderr
