"""``tallymark accept-loss`` on a table whose newest log entry was deleted."""

from tests.cli.scene import data_files, run, run_json, write


def test_lost_commits_are_named_by_every_command_and_removed_after_a_yes(tmp_path):
    write(tmp_path, 1)
    kept = data_files(tmp_path)
    write(tmp_path, 2, 3)
    (tmp_path / ".hoodie/.tallymark/log/00000000000000000002").unlink()
    refused = run("status", tmp_path)
    assert refused.exit_code == 1
    assert "tallymark accept-loss" in refused.stderr
    assert run("accept-loss", tmp_path, answer="n\n").exit_code == 1
    assert data_files(tmp_path) > kept
    page = run("accept-loss", tmp_path, answer="y\n").stdout
    assert page.startswith("The log ends at position 1. 1 lost commits and 2 files removed.")
    assert data_files(tmp_path) == kept
    assert run_json("accept-loss", tmp_path, "--yes")["instants"] == []
