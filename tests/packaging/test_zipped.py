"""The package from a zip file on the path, as ``--py-files`` gives it to Spark's executors."""

from zipfile import ZipFile

import pytest

WRITE = """
import anyio, pyarrow as pa, sys, tallymark
from functools import partial

ROWS = pa.table({"month": [1, 1, 2], "flight": [1, 2, 3]})

async def main():
    table = tallymark.open_table(sys.argv[1])
    async with table.write(schema=ROWS.schema, mode="append", partition_by=["month"]) as job:
        task = partial(tallymark.write_task, job.ticket, ROWS.to_batches(), task=0)
        result = await job.commit([await anyio.to_thread.run_sync(task)])
    print(tallymark.__file__, result.rows, result.files)

anyio.run(main, backend="trio")
"""


@pytest.fixture(scope="session")
def zipped(distribution, tmp_path_factory):
    """The wheel's ``tallymark`` folder alone."""
    target = tmp_path_factory.mktemp("zipped") / "tallymark.zip"
    with ZipFile(distribution.wheel) as wheel, ZipFile(target, "w") as archive:
        for name in wheel.namelist():
            if name.startswith("tallymark/"):
                archive.writestr(name, wheel.read(name))
    return target


def test_zip_on_the_path_imports_and_writes(bare, zipped, tmp_path):
    printed = bare.run("-c", WRITE, tmp_path / "table", cwd=tmp_path, PYTHONPATH=zipped)
    assert printed.split() == [f"{zipped}/tallymark/__init__.py", "3", "2"]
    assert len(list((tmp_path / "table").glob("month=*/*.parquet"))) == 2
