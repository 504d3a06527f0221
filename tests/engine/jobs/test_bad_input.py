"""What a nightly job may get wrong: each one error that names the input, the rule and the remedy, and nothing changes.

On a local disk, where each file's bytes and time of change are compared. A task's own finding comes later, when the job
has begun: all that is left of that is the log's entry that nothing is left.
"""

from pathlib import Path
from typing import Any

import pytest

from tallymark.backends.local import LocalBackend
from tallymark.engine.errors import InvalidRequest
from tests.engine.jobs.scene import table
from tests.engine.jobs.yearly import OLD, write
from tests.support.loops import on_both_loops
from tests.support.storage import files, objects, tree
from tests.table_invariants import decisions, table_is_at_rest

NEW = (9, 2013, 1)
STRAY = (10, 2014, 7)
YEAR = {"year": 2013}
TXN = "load:1"

CALLS: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "a static value of another type": (
        {"mode": "overwrite", "partition": {"year": "2013"}},
        ("partition={'year': '2013'}", "column 'year' is int32, and '2013' is a str", "give an int"),
    ),
    "a static value that does not fit": (
        {"mode": "overwrite", "partition": {"year": 2**40}},
        ("partition={'year': 1099511627776}", "column 'year' is int32, which cannot hold", "give another value"),
    ),
    "static names that are no prefix": (
        {"mode": "overwrite", "partition": {"month": 1}},
        ("partition={'month': 1}", "leaves out 'year'; the table is partitioned by", "name the first of these"),
    ),
    "a static name that is not a partition column": (
        {"mode": "overwrite", "partition": {"flight": 1}},
        ("partition={'flight': 1}", "'flight' is not a partition column", "partitioned by ['year', 'month']"),
    ),
    "more than the guard allows": (
        {"mode": "overwrite", "only_partitions": YEAR},
        ("only_partitions=[{'year': 2013}]", "replaces the whole table", "or allow more"),
    ),
    "a partition beside the guard": (
        {"mode": "append", "partition": {"year": 2014}, "only_partitions": YEAR},
        ("only_partitions=[{'year': 2013}]", "allows nothing there", "name a partition that it allows"),
    ),
    "a txn that named another write": (
        {"mode": "overwrite", "txn": TXN},
        (f"txn={TXN!r}", 'committed at position 1 (instant 20261121', "give this one a txn of its own"),
    ),
    "a txn that named another partition": (
        {"mode": "append", "partition": YEAR, "txn": TXN},
        (f"txn={TXN!r}", 'declares {"mode": "append", "partition": "year=2013"}', "repeat the call as it was"),
    ),
    "a base that the log has not reached": (
        {"mode": "overwrite", "base": 9},
        ("base=9", "the log ends at position 2", "give one at which this table was read"),
    ),
}  # fmt: skip


async def two_commits(where: Path, **named: Any) -> LocalBackend:
    """The second replaces all of the first, which had a txn."""
    backend = LocalBackend(where)
    await write(backend, OLD, txn=TXN, **named)
    await write(backend, OLD, "overwrite")
    return backend


def assert_told(error: BaseException, parts: tuple[str, ...]) -> None:
    assert type(error) is InvalidRequest
    assert all(part in str(error) for part in parts), str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 600


@pytest.mark.parametrize("case", CALLS)
@on_both_loops
async def test_a_call_that_cannot_be_is_refused_and_nothing_changes(tmp_path, case):
    call, parts = CALLS[case]
    backend = await two_commits(tmp_path / "table")
    before = tree(tmp_path)
    with pytest.raises(InvalidRequest) as caught:
        await write(backend, [NEW], **call)
    assert_told(caught.value, parts)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("readers", "rule"),
    [
        ("directory", "with readers='directory' what an overwrite replaces, or an append fills, is deleted at once"),
        ("table", "a clean has let go what was replaced before (retain_hours=24)"),
    ],
)
@on_both_loops
async def test_an_as_of_whose_files_are_gone_is_refused_and_nothing_changes(tmp_path, readers, rule):
    backend = await two_commits(tmp_path / "table", readers=readers)
    if readers == "table":
        await table(backend).clean(retain_hours=0)
    before = tree(tmp_path)
    with pytest.raises(InvalidRequest) as caught:
        await table(backend).snapshot(1)
    assert_told(caught.value, ("as_of=1", rule, "give position 2 or a later one, or a time after "))
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("named", "parts"),
    [
        (
            {"only_partitions": YEAR},
            ("only_partitions=[{'year': 2013}]", "a row belongs to partition 'year=2014/month=7'", "drop such rows"),
        ),
        ({"partition": YEAR}, ("partition={'year': 2013}", "a row has year=2014", "drop such rows")),
    ],
    ids=["guard", "static partition"],
)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
@on_both_loops
async def test_a_row_that_breaks_out_ends_the_job_and_no_more_than_that_stands_in_the_log(tmp_path, mode, named, parts):
    backend = await two_commits(tmp_path / "table")
    before = tree(tmp_path)
    with pytest.raises(InvalidRequest) as caught:
        await write(backend, [NEW, STRAY], mode, partition_overwrite="dynamic", txn="load:2", **named)
    assert_told(caught.value, parts)
    after = tree(tmp_path)
    assert {name: after[name] for name in before} == before
    assert files(tmp_path) - before.keys() == {"table/.hoodie/.tallymark/log/00000000000000000003"}
    assert [entry["kind"] for entry in decisions(objects(tmp_path / "table")).values()][2:] == ["rollback"]
    table_is_at_rest(objects(tmp_path / "table"))
