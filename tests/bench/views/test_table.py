from collections import Counter
from random import Random

from tallymark.backends import open_backend
from tallymark.bench.made_table import MadeTable, TableShape
from tallymark.bench.views.lookup import lookups
from tallymark.engine.table import open_table
from tests.support.loops import on_both_loops

SHAPE = TableShape(files=50, partitions=20, commits=3)


async def made(backend):
    table = MadeTable(backend, SHAPE, projected=True)
    await table.make()
    return table


@on_both_loops
async def test_a_made_table_is_one_that_everybody_opens_with_the_files_that_it_says(tmp_path):
    table = await made(open_backend(tmp_path))
    await table.append(5, Random(1))
    snapshot = await open_table(tmp_path).snapshot()
    assert snapshot.position == 4
    assert sorted(file.path for file in snapshot.files) == sorted(file.path for file in table.files)
    assert set(Counter(file.partition for file in table.files[:50]).values()) == {2, 3}


@on_both_loops
async def test_lookups_are_for_partitions_and_for_files_that_are_there(tmp_path):
    table = await made(open_backend(tmp_path))
    held = Counter(file.partition for file in table.files)
    ids = {(file.partition, file.file_id) for file in table.files}
    found = lookups(table.files, Random(1), 100)
    assert sum(lookup.file_id is None for lookup in found) == 50
    for lookup in found:
        if lookup.file_id is None:
            assert lookup.files == held[lookup.partition]
        else:
            assert (lookup.partition, lookup.file_id) in ids
