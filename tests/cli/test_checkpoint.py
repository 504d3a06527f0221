from tests.cli.scene import run, run_json, write


def test_a_checkpoint_is_left_and_told(tmp_path):
    write(tmp_path, 1, 2)
    document = run_json("checkpoint", tmp_path)
    assert (document["position"], document["files"], document["partitions"], document["parts_written"]) == (1, 2, 2, 1)
    assert document["bytes_written"] > 0
    assert (tmp_path / ".hoodie/.tallymark/checkpoint/latest").exists()


def test_one_that_is_there_is_told_on_a_page(tmp_path):
    write(tmp_path, 1, 2)
    first = run("checkpoint", tmp_path).stdout.splitlines()
    assert first[0] == "Position 1: 2 files in 2 partitions."
    assert first[1].startswith("1 of 1 parts written, ")
    assert run("checkpoint", tmp_path).stdout.splitlines()[1] == "There was a checkpoint of it already."
