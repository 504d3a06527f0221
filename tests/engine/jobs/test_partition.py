"""A write for a static partition: what it replaces, and what it fills in."""

from typing import Any

import pyarrow as pa
import pytest

from tallymark.engine.errors import ConflictError, InvalidRequest
from tests.engine.jobs.scene import table, write_in_thread
from tests.engine.jobs.yearly import DYNAMIC, FLIGHTS, MONTH, NEW, OLD, STATIC, YEAR, begin, flights, held, write

pytestmark = pytest.mark.usefixtures("loop")

ONLY_FLIGHT = pa.schema([("flight", pa.int64())])
WITHOUT_YEAR = pa.schema([("flight", pa.int64()), ("month", pa.int32())])

CASES: dict[str, tuple[dict[str, Any], set[int], set[int]]] = {
    # call, flights of OLD that stay, and those that stay if there is no new row
    "append": ({"mode": "append"}, {1, 2, 3, 4}, {1, 2, 3, 4}),
    "append to a year": ({"mode": "append", "partition": YEAR}, {1, 2, 3, 4}, {1, 2, 3, 4}),
    "static": (STATIC, set(), set()),
    "static of a year": ({**STATIC, "partition": YEAR}, {3, 4}, {3, 4}),
    "static of a month": ({**STATIC, "partition": MONTH}, {2, 3, 4}, {2, 3, 4}),
    "dynamic": (DYNAMIC, {2, 3, 4}, {1, 2, 3, 4}),
    "dynamic of a year": ({**DYNAMIC, "partition": YEAR}, {2, 3, 4}, {1, 2, 3, 4}),
    "dynamic of a month": ({**DYNAMIC, "partition": MONTH}, {2, 3, 4}, {2, 3, 4}),
}


@pytest.mark.parametrize("new", [[NEW], []], ids=["a row", "empty"])
@pytest.mark.parametrize("case", CASES)
async def test_each_call_replaces_what_the_documentation_says(store, case, new):
    call, stay_beside_new, stay_if_empty = CASES[case]
    stay = stay_beside_new if new else stay_if_empty
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


async def test_the_scope_that_is_logged_is_the_prefix_or_the_partition(staged):
    await write(staged.backend, OLD)
    for call in ({**STATIC, "partition": YEAR}, {**STATIC, "partition": MONTH}, {**DYNAMIC, "partition": YEAR}):
        await write(staged.backend, [NEW], **call)
    assert [entry["scope"] for entry in staged.log_entries[1:]] == [
        {"all": False, "partitions": [], "prefixes": ["year=2013"]},
        {"all": False, "partitions": ["year=2013/month=1"], "prefixes": []},
        {"all": False, "partitions": ["year=2013/month=1"], "prefixes": []},
    ]


@pytest.mark.parametrize(
    ("schema", "partition"),
    [(WITHOUT_YEAR, YEAR), (ONLY_FLIGHT, MONTH), (WITHOUT_YEAR.append(FLIGHTS.field(1)), MONTH)],
)
async def test_static_columns_that_the_input_lacks_are_filled_in_where_the_table_has_them(store, schema, partition):
    await write(store.backend, OLD)
    await write(store.backend, [NEW], partition=partition, schema=schema)
    assert held(store.objects) == [*OLD, NEW]
    assert (await table(store.backend).snapshot()).schema == FLIGHTS
    store.check_at_rest()


async def test_a_new_table_has_the_static_column_at_its_end_in_the_values_type(staged):
    schema = WITHOUT_YEAR.with_metadata({b"kept": b"yes"})
    await write(staged.backend, [NEW], partition=YEAR, schema=schema)
    found = (await table(staged.backend).snapshot()).schema
    assert found == WITHOUT_YEAR.append(pa.field("year", pa.int64()))
    assert found.metadata == {b"kept": b"yes"}
    await write(staged.backend, [(10, 2014, 1)], partition={"year": 2014, "month": 1}, schema=ONLY_FLIGHT)
    assert held(staged.objects) == [NEW, (10, 2014, 1)]
    staged.check_at_rest()


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


async def test_of_two_creators_the_later_finds_the_types_of_the_earlier(store):
    """Its own guess of the column's type was int64."""
    raced = []

    class Racing:
        """Lets another writer create the table when this one has found none."""

        def __getattr__(self, name: str):
            return getattr(store.backend, name)

        async def put_new(self, path: str, data: bytes) -> None:
            if path.endswith("hoodie.properties") and not raced:
                raced.append(path)
                await write(store.backend, [])
            await store.backend.put_new(path, data)

    await write(Racing(), [NEW], partition=YEAR, schema=WITHOUT_YEAR)
    assert raced
    assert (await table(store.backend).snapshot()).schema == FLIGHTS
    assert held(store.objects) == [NEW]


async def test_a_row_with_another_value_fails_its_task_and_nothing_is_left(store):
    await write(store.backend, OLD)
    before = {path: store.objects[path] for path in store.data_files}
    with pytest.raises(InvalidRequest, match=r"a row has year=2014, and .* partition={'year': 2013}.*drop such rows"):
        await write(store.backend, [NEW, (10, 2014, 7)], "overwrite", partition=YEAR)
    assert {path: store.objects[path] for path in store.committed_files} == before
    store.check_only_commits_are_left()
    assert not any(path.startswith("year=2013/") for path in store.data_files - before.keys()), "not begun"


async def test_a_report_of_files_elsewhere_is_refused_at_the_commit(staged):
    async with begin(staged.backend) as other, begin(staged.backend, "overwrite", partition=YEAR) as job:
        report = await write_in_thread(other, staged.backend, flights([(3, 2014, 1)]))
        stray = type(report)(instant=job.instant, task=0, attempt=0, files=report.files)
        with pytest.raises(InvalidRequest, match=r"year=2014/month=1/.* does not lie in partition={'year': 2013}"):
            await job.commit([stray])
    assert staged.committed_files == set()


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (YEAR, YEAR, "year=2013"),
        (YEAR, MONTH, "year=2013/month=1"),
        (MONTH, YEAR, "year=2013/month=1"),
        (None, YEAR, "year=2013"),
    ],
)
async def test_overwrites_of_one_part_exclude_each_other_also_where_it_is_empty(unstaged, one, other, shared):
    async with begin(unstaged.backend, "overwrite", partition=one) as winner:
        with pytest.raises(ConflictError) as caught:  # noqa: PT012
            async with begin(unstaged.backend, "overwrite", partition=other) as loser:
                await winner.commit([])
                await loser.commit([])
    assert caught.value.partition == shared
    assert repr(shared) in str(caught.value)
    unstaged.check_at_rest()
