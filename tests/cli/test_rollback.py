import anyio
import pytest

from tallymark.engine.errors import RolledBack
from tests.cli.scene import data_files, run, run_json, write, written


def test_rollback_ends_dead_writers_and_keeps_what_is_committed(abandoned):
    page = run("rollback", abandoned.folder).stdout
    assert abandoned.instant in page
    assert "rolled back" in page
    assert data_files(abandoned.folder) == abandoned.committed
    assert "No instant to end" in run("rollback", abandoned.folder).stdout
    assert run_json("rollback", abandoned.folder)["ended"] == []


def test_a_dry_run_states_what_would_be_ended_and_changes_nothing(abandoned):
    before = data_files(abandoned.folder)
    assert "Dry run" in run("rollback", abandoned.folder, "--dry-run").stdout
    planned = run_json("rollback", abandoned.folder, "--dry-run")
    named = run_json("rollback", abandoned.folder, "--dry-run", "--instant", abandoned.instant)
    assert planned == named
    assert planned["dry_run"]
    assert data_files(abandoned.folder) == before
    done = run_json("rollback", abandoned.folder)
    assert done == {**planned, "dry_run": False}
    assert "is not open" in run("rollback", abandoned.folder, "--dry-run", "--instant", abandoned.instant).stderr


def test_a_live_writer_is_named_before_it_is_rolled_back_and_left_alone_on_no(tmp_path):
    async def answer_no() -> None:
        async with written(tmp_path, 1) as (job, reports):
            arguments = ("rollback", tmp_path, "--instant", job.instant)
            result = await anyio.to_thread.run_sync(lambda: run(*arguments, answer="n\n"))
            assert result.exit_code == 1
            assert f"Instant {job.instant} is being written by" in result.stderr
            assert "(alive, last heartbeat" in result.stderr
            assert result.stdout == ""
            await job.commit(reports)

    anyio.run(answer_no, backend="trio")
    assert run_json("status", tmp_path)["rows"] == 3


@pytest.mark.parametrize(("options", "answer"), [(["--yes"], None), ([], "y\n")])
def test_a_named_instant_is_rolled_back_though_its_writer_lives(tmp_path, options, answer):
    async def roll_back_while_writing() -> None:
        async with written(tmp_path, 1) as (job, reports):
            arguments = ("rollback", tmp_path, "--instant", job.instant, *options)
            result = await anyio.to_thread.run_sync(lambda: run(*arguments, answer=answer))
            assert result.exit_code == 0
            assert "rolled back" in result.stdout
            with pytest.raises(RolledBack):
                await job.commit(reports)

    anyio.run(roll_back_while_writing, backend="trio")
    assert data_files(tmp_path) == set()
    assert run_json("status", tmp_path)["open_instants"] == []


@pytest.mark.parametrize("options", [[], ["--yes"]])
def test_an_instant_that_is_not_open_is_refused_without_a_question(tmp_path, options):
    write(tmp_path, 1)
    result = run("rollback", tmp_path, "--instant", "20130101000000000", *options)
    assert result.exit_code == 1
    assert result.stderr.startswith("tallymark: instant '20130101000000000' is not open")
    assert len(result.stderr.splitlines()) == 1
