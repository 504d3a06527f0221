"""A write for a static partition: what it replaces, what it fills in, and what it refuses."""

from typing import Any

import pyarrow as pa
import pytest

from tallymark.engine.errors import ConflictError, InvalidRequest
from tests.engine.jobs.scene import table, write_in_thread
from tests.engine.jobs.yearly import FLIGHTS, OLD, begin, flights, held, write
from tests.support.loops import on_both_loops

NEW = (9, 2013, 1)
YEAR = {"year": 2013}
MONTH = {"year": 2013, "month": 1}
ONLY_FLIGHT = pa.schema([("flight", pa.int64())])
WITHOUT_YEAR = pa.schema([("flight", pa.int64()), ("month", pa.int32())])

CASES: dict[str, tuple[dict[str, Any], list[tuple[int, int, int]], set[int]]] = {
    # call, new rows, flights of OLD that stay
    "append": ({"mode": "append"}, [NEW], {1, 2, 3, 4}),
    "append to a year": ({"mode": "append", "partition": YEAR}, [NEW], {1, 2, 3, 4}),
    "static": ({"mode": "overwrite"}, [NEW], set()),
    "static, empty": ({"mode": "overwrite"}, [], set()),
    "static of a year": ({"mode": "overwrite", "partition": YEAR}, [NEW], {3, 4}),
    "static of a year, empty": ({"mode": "overwrite", "partition": YEAR}, [], {3, 4}),
    "static of a month": ({"mode": "overwrite", "partition": MONTH}, [NEW], {2, 3, 4}),
    "static of a month, empty": ({"mode": "overwrite", "partition": MONTH}, [], {2, 3, 4}),
    "dynamic": ({"mode": "overwrite", "partition_overwrite": "dynamic"}, [NEW], {2, 3, 4}),
    "dynamic, empty": ({"mode": "overwrite", "partition_overwrite": "dynamic"}, [], {1, 2, 3, 4}),
    "dynamic of a year": (
        {"mode": "overwrite", "partition_overwrite": "dynamic", "partition": YEAR},
        [NEW],
        {2, 3, 4},
    ),
    "dynamic of a year, empty": (
        {"mode": "overwrite", "partition_overwrite": "dynamic", "partition": YEAR},
        [],
        {1, 2, 3, 4},
    ),
    "dynamic of a month": (
        {"mode": "overwrite", "partition_overwrite": "dynamic", "partition": MONTH},
        [NEW],
        {2, 3, 4},
    ),
    "dynamic of a month, empty": (
        {"mode": "overwrite", "partition_overwrite": "dynamic", "partition": MONTH},
        [],
        {2, 3, 4},
    ),
}


@pytest.mark.parametrize("case", CASES)
@on_both_loops
async def test_each_call_replaces_what_the_documentation_says(store, case):
    call, new, stay = CASES[case]
    await write(store.backend, OLD)
    before = {path: (store.objects[path], store.modified[path]) for path in store.committed_files}
    store.clock.now += 5
    result = await write(store.backend, new, **call)
    assert held(store.objects) == sorted([*(row for row in OLD if row[0] in stay), *new])
    kept = {path: (data, store.modified[path]) for path, data in store.objects.items() if path in before}
    assert kept.items() <= before.items(), "a file that stays was written again"
    assert kept.keys() == store.committed_files & before.keys()
    assert (result.removed_files, result.files, result.rows) == (4 - len(stay), len(new), len(new))
    store.check_at_rest()


@on_both_loops
async def test_the_scope_that_is_logged_is_the_prefix_or_the_partition(staged):
    await write(staged.backend, OLD)
    await write(staged.backend, [NEW], "overwrite", partition=YEAR)
    await write(staged.backend, [NEW], "overwrite", partition=MONTH)
    await write(staged.backend, [NEW], "overwrite", partition=YEAR, partition_overwrite="dynamic")
    assert [entry["scope"] for entry in staged.log_entries[1:]] == [
        {"all": False, "partitions": [], "prefixes": ["year=2013"]},
        {"all": False, "partitions": ["year=2013/month=1"], "prefixes": []},
        {"all": False, "partitions": ["year=2013/month=1"], "prefixes": []},
    ]


@pytest.mark.parametrize(
    ("schema", "partition"),
    [(WITHOUT_YEAR, YEAR), (ONLY_FLIGHT, MONTH), (WITHOUT_YEAR.append(FLIGHTS.field(1)), MONTH)],
)
@on_both_loops
async def test_static_columns_that_the_input_lacks_are_filled_in_where_the_table_has_them(store, schema, partition):
    await write(store.backend, OLD)
    await write(store.backend, [NEW], partition=partition, schema=schema)
    assert held(store.objects) == [*OLD, NEW]
    assert (await table(store.backend).snapshot()).schema == FLIGHTS
    store.check_at_rest()


@on_both_loops
async def test_a_new_table_has_the_static_column_at_its_end_in_the_values_type(staged):
    schema = WITHOUT_YEAR.with_metadata({b"kept": b"yes"})
    await write(staged.backend, [NEW], partition=YEAR, schema=schema)
    found = (await table(staged.backend).snapshot()).schema
    assert found == WITHOUT_YEAR.append(pa.field("year", pa.int64()))
    assert found.metadata == {b"kept": b"yes"}
    await write(staged.backend, [(10, 2014, 1)], partition={"year": 2014, "month": 1}, schema=ONLY_FLIGHT)
    assert held(staged.objects) == [NEW, (10, 2014, 1)]
    staged.check_at_rest()


@on_both_loops
async def test_an_existing_table_knows_its_partitioning_and_types_by_itself(staged):
    await write(staged.backend, OLD)
    await write(staged.backend, [NEW], "overwrite", partition=YEAR, schema=WITHOUT_YEAR, partition_by=())
    await write(staged.backend, [(10, 0, 5)], partition={"year": None}, schema=WITHOUT_YEAR, partition_by=())
    snapshot = await table(staged.backend).snapshot()
    assert [file.partition for file in snapshot.files] == [
        "year=2013/month=1",
        "year=20130/month=1",
        "year=2014/month=1",
        "year=__HIVE_DEFAULT_PARTITION__/month=5",
    ]


@on_both_loops
async def test_of_two_creators_the_later_finds_the_types_of_the_earlier(store):
    """Its own guess of the column's type was int64."""
    others = table(store.backend)
    raced = []

    class Racing:
        """Lets another writer create the table when this one has found none."""

        def __getattr__(self, name: str):
            return getattr(store.backend, name)

        async def put_new(self, path: str, data: bytes) -> None:
            if path.endswith("hoodie.properties") and not raced:
                raced.append(path)
                async with begin(others) as job:
                    await job.commit([])
            await store.backend.put_new(path, data)

    await write(Racing(), [NEW], partition=YEAR, schema=WITHOUT_YEAR)
    assert raced
    assert (await table(store.backend).snapshot()).schema == FLIGHTS
    assert held(store.objects) == [NEW]


@on_both_loops
async def test_a_row_with_another_value_fails_its_task_and_nothing_is_left(store):
    await write(store.backend, OLD)
    before = {path: store.objects[path] for path in store.data_files}
    with pytest.raises(InvalidRequest, match=r"a row has year=2014, and .* partition={'year': 2013}.*drop such rows"):
        await write(store.backend, [NEW, (10, 2014, 7)], "overwrite", partition=YEAR)
    assert {path: store.objects[path] for path in store.committed_files} == before
    store.check_only_commits_are_left()
    assert not any(path.startswith("year=2013/") for path in store.data_files - before.keys()), "not begun"


@on_both_loops
async def test_a_report_of_files_elsewhere_is_refused_at_the_commit(staged):
    async with begin(staged.backend) as other, begin(staged.backend, "overwrite", partition=YEAR) as job:
        report = await write_in_thread(other, staged.backend, flights([(3, 2014, 1)]))
        stray = type(report)(instant=job.instant, task=0, attempt=0, files=report.files)
        with pytest.raises(InvalidRequest, match=r"year=2014/month=1/.* does not lie in partition={'year': 2013}"):
            await job.commit([stray])
    assert staged.committed_files == set()


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "of another type": ({"partition": {"year": "2013"}}, "column 'year' is int32, and '2013' is a str.*give an int"),
    "too large": (
        {"partition": {"year": 2**40}},
        "column 'year' is int32, which cannot hold 1099511627776.*give another value",
    ),
    "not a prefix": ({"partition": {"month": 1}}, "leaves out 'year'.*name the first of these"),
    "unknown": (
        {"partition": {"airport": "EWR"}},
        r"'airport' is not a partition column.*partitioned by \['year', 'month'\]",
    ),
    "no mapping": ({"partition": "year=2013"}, "give values of first partition columns"),
    "empty": ({"partition": {}}, "partition={}: give values"),
    "names that are none": ({"partition": {2013: "year"}}, "give values"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("exists", [True, False], ids=["existing", "new"])
@on_both_loops
async def test_a_partition_that_the_table_cannot_have_is_refused_before_anything_changes(unstaged, case, exists):
    named, says = BAD[case]
    if exists:
        await write(unstaged.backend, OLD)
    before = unstaged.objects
    with pytest.raises(InvalidRequest, match=says):
        await write(unstaged.backend, [NEW], "overwrite", **named)
    assert unstaged.objects == before


@on_both_loops
async def test_a_new_table_that_is_not_to_be_partitioned_has_no_static_partition(unstaged):
    with pytest.raises(InvalidRequest, match="the table is not partitioned; leave partition out, or give partition_by"):
        await write(unstaged.backend, [NEW], partition=YEAR, partition_by=())
    assert unstaged.objects == {}


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (YEAR, YEAR, "year=2013"),
        (YEAR, MONTH, "year=2013/month=1"),
        (MONTH, YEAR, "year=2013/month=1"),
        (None, YEAR, "year=2013"),
    ],
)
@on_both_loops
async def test_overwrites_of_one_part_exclude_each_other_also_where_it_is_empty(unstaged, one, other, shared):
    async with begin(unstaged.backend, "overwrite", partition=one) as winner:
        with pytest.raises(ConflictError) as caught:  # noqa: PT012
            async with begin(unstaged.backend, "overwrite", partition=other) as loser:
                await winner.commit([])
                await loser.commit([])
    assert caught.value.partition == shared
    assert repr(shared) in str(caught.value)
    unstaged.check_at_rest()


@on_both_loops
async def test_overwrites_of_different_years_both_stand(unstaged):
    await write(unstaged.backend, OLD)
    async with (
        begin(unstaged.backend, "overwrite", partition=YEAR) as one,
        begin(unstaged.backend, "overwrite", partition={"year": 2014}) as other,
    ):
        await one.commit([])
        await other.commit([])
    assert held(unstaged.objects) == [(4, 20130, 1)]
    unstaged.check_at_rest()
