import trio

from tallymark import open_table
from tests.cli.scene import data_files, run, run_json, write
from tests.engine.jobs.filling import appended


def test_a_file_may_be_named_in_several_ways(tmp_path, monkeypatch):
    write(tmp_path / "flights", 1)
    (path,) = data_files(tmp_path / "flights")
    monkeypatch.chdir(tmp_path)
    for named in (path, path.rpartition("/")[2], tmp_path / "flights" / path, f"flights/{path}"):
        assert run_json("explain", "flights", named)["path"] == path
    url = f"{(tmp_path / 'flights').as_uri()}/{path}"
    assert run_json("explain", tmp_path / "flights", url)["path"] == path


def test_the_page_of_what_a_dead_writer_left_ends_with_the_command_that_removes_it(abandoned):
    path, *_ = sorted(data_files(abandoned.folder) - abandoned.committed)
    page = run("explain", abandoned.folder, path).stdout
    assert "uncommitted" in page
    assert "is dead" in page
    command = page.rstrip().splitlines()[-1].removeprefix("now").split()
    assert command == ["tallymark", "rollback", abandoned.folder.as_uri()]
    run(*command[1:])
    assert data_files(abandoned.folder) == abandoned.committed
    assert "rolled back, not there" in run("explain", abandoned.folder, path).stdout


def test_a_file_that_was_made_by_filling_names_the_small_one_and_what_it_cost(tmp_path):
    trio.run(appended, open_table(str(tmp_path)), {1: [1, 2]})
    (small,) = data_files(tmp_path)
    size = (tmp_path / small).stat().st_size
    trio.run(appended, open_table(str(tmp_path)), {1: [3]})
    (made,) = data_files(tmp_path)
    document = run_json("explain", tmp_path, made)
    assert (document["made_of"], document["filled_into"], document["rewritten_bytes"]) == ([small], [], size)
    gone = run_json("explain", tmp_path, small)
    assert (gone["fate"], gone["made_of"], gone["filled_into"], gone["rewritten_bytes"]) == ("replaced", [], [made], 0)
    assert f"its rows went into {made}" in run("explain", tmp_path, small).stdout
