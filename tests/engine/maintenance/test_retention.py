"""``readers`` and ``retain_hours``: said by the write that creates a table, and fixed from then on."""

import pytest

from tallymark.engine.errors import InvalidRequest
from tests.engine.jobs.scene import Store, begin, committed, table


def properties_of(store: Store) -> set[str]:
    lines = store.objects[".hoodie/hoodie.properties"].decode().splitlines()
    return {line for line in lines if line.startswith(("tallymark.readers", "tallymark.retain"))}


@pytest.mark.parametrize(
    ("said", "readers", "retain_hours"),
    [
        ({}, "directory", None),
        ({"readers": "directory"}, "directory", None),
        ({"readers": "table"}, "table", 24.0),
        ({"readers": "table", "retain_hours": 1}, "table", 1.0),
    ],
)
async def test_the_first_write_says_how_replaced_files_are_kept_and_one_that_says_nothing_or_the_same_keeps_that(
    staged, said, readers, retain_hours
):
    for again in (said, {}, *({name: value} for name, value in said.items())):
        await committed(staged.backend, **again)
        made = {f"tallymark.readers={readers}", f"tallymark.retain_hours={retain_hours}"}
        assert properties_of(staged) == {line for line in made if not line.endswith("None")}
    status = await table(staged.backend).status()
    assert (status.readers, status.retain_hours) == (readers, retain_hours)


@pytest.mark.parametrize(
    ("made", "said", "told"),
    [
        ({}, {"readers": "table"}, "readers='table': the table was made with readers='directory', which is fixed"),
        ({}, {"retain_hours": 5}, "retain_hours=5: the table was made with readers='directory', which is fixed"),
        ({"readers": "table"}, {"readers": "directory"}, "with readers='table' and retain_hours=24, which is"),
        ({"readers": "table"}, {"retain_hours": 48}, "retain_hours=48: the table was made with readers='table'"),
    ],
)
async def test_a_later_write_that_says_something_else_is_refused_and_changes_nothing(staged, made, said, told):
    await committed(staged.backend, **made)
    before = staged.objects
    with pytest.raises(InvalidRequest, match=told) as refused:
        async with begin(staged.backend, **said):
            pass
    assert "leave" in str(refused.value)
    assert staged.objects == before


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"readers": "all"}, "readers='all': say 'directory'.*or 'table'"),
        ({"readers": True}, "readers=True"),
        ({"retain_hours": 3}, "retain_hours=3: a table with readers='directory' keeps no replaced files"),
        ({"readers": "directory", "retain_hours": 0}, "keeps no replaced files"),
        ({"readers": "table", "retain_hours": -1}, "retain_hours=-1: give a number of hours, 0 or more"),
        ({"readers": "table", "retain_hours": float("inf")}, "retain_hours=inf: give a number"),
        ({"readers": "table", "retain_hours": float("nan")}, "retain_hours=nan: give a number"),
        ({"readers": "table", "retain_hours": "24"}, "retain_hours='24': give a number"),
        ({"readers": "table", "retain_hours": True}, "retain_hours=True: give a number"),
    ],
)
async def test_what_cannot_be_is_refused_before_a_table_is_made(staged, said, told):
    with pytest.raises(InvalidRequest, match=told):
        async with begin(staged.backend, **said):
            pass
    assert staged.objects == {}
