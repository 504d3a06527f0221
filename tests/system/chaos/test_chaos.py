"""Short rounds of chaos on a local disk and on an S3 that lies; and a judge that finds what is broken on purpose."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

import tallymark
from tests.support.services.s3_server import S3Server
from tests.support.storage import objects
from tests.system.chaos.judge import Story, judge, live_files
from tests.system.chaos.lives import Journal, WriterOfJob
from tests.system.chaos.plans import COMMIT, JobPlan
from tests.system.chaos.rounds import Ground, LyingStore, Outcome, play
from tests.system.pool_worker import TaskPlan

Round = tuple[dict[str, bytes], dict[int, JobPlan], list[dict[str, Any]]]


@pytest.mark.slow
def test_thirty_seconds_of_chaos_on_a_local_disk_break_no_promise(tmp_path: Path) -> None:
    assert_nothing_broke(play(Ground(tmp_path), 1, 30.0))


@pytest.mark.slow
def test_twenty_seconds_of_chaos_on_an_s3_that_lies_break_no_promise(tmp_path: Path, s3: S3Server) -> None:
    outcome = play(LyingStore(tmp_path, s3), 1, 20.0)
    assert_nothing_broke(outcome)
    assert outcome.counts["faults"]


def assert_nothing_broke(outcome: Outcome) -> None:
    print(outcome)
    assert outcome.broken == []
    assert outcome.counts["log: commit"] >= 5  # a slow machine commits as few
    assert outcome.counts["kill driver"]


def lose_a_file(round_: Round) -> None:
    storage, _, _ = round_
    del storage[min(live_files(storage))]


def keep_a_file_of_another_attempt(round_: Round) -> None:
    storage, _, _ = round_
    file = min(live_files(storage))
    storage[f"part=a/stray-{file.rpartition('/')[2]}"] = storage[file]


def write_other_rows(round_: Round) -> None:
    _, plans, _ = round_
    plans[1] = replace(plans[1], tasks=(replace(plans[1].tasks[0], first_id=77),))


def tell_another_position(round_: Round) -> None:
    for note in round_[2]:
        note.update(position=7) if note.get("told") == "committed" else None


def tell_that_nothing_was_committed(round_: Round) -> None:
    for note in round_[2]:
        note.update(told="not committed") if "told" in note else None


def read_half_of_an_overwrite(round_: Round) -> None:
    round_[2].append({"table": "plain", "read": 3, "rows": 5, "digest": ""})


def note_a_defect(round_: Round) -> None:
    round_[2].append({"plan": 1, "defect": "CorruptObject: of an entry"})


BROKEN: dict[Callable[[Round], None], str] = {
    lose_a_file: "committed and gone",
    keep_a_file_of_another_attempt: "neither committed nor",
    write_other_rows: "rows lost: 16",
    tell_another_position: "told committed, and is not at that position",
    tell_that_nothing_was_committed: "told not committed, and is",
    read_half_of_an_overwrite: "a leased reader saw 5 rows at 3, of 24",
    note_a_defect: "CorruptObject",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda function: function.__name__)
def test_the_judge_finds_what_was_broken_on_purpose_and_nothing_else(
    tmp_path: Path, broken: Callable[[Round], None]
) -> None:
    plans = {
        1: JobPlan(number=1, table="plain", mode="append", tasks=(TaskPlan(first_id=100),)),
        2: JobPlan(number=2, table="plain", mode="append", tasks=(TaskPlan(first_id=200),), is_left=True),
        3: JobPlan(number=3, table="plain", mode="static overwrite", tasks=(TaskPlan(first_id=300, parts=("c",)),)),
    }

    async def write() -> None:
        table, journal = tallymark.open_table(tmp_path / "table", commit=COMMIT), Journal(tmp_path / "a.journal")
        for plan in plans.values():
            await WriterOfJob(table, plan, journal, ()).run()

    anyio.run(write, backend="trio")
    storage, story = objects(tmp_path / "table"), Story.of(tmp_path)
    assert [*judge({"plain": storage}, plans, story)] == []
    broken((storage, plans, story.notes))
    assert any(BROKEN[broken] in problem for problem in judge({"plain": storage}, plans, story))
