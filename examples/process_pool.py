"""A write job of an engine that is not Spark: processes write an Arrow dataset's fragments, asyncio commits them."""

import asyncio
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

import tallymark


def make_input(folder: str) -> list[str]:
    days = pa.table({"month": [day % 12 + 1 for day in range(4000)], "day": range(4000)})
    ds.write_dataset(days, folder, format="parquet", max_rows_per_file=1000, max_rows_per_group=1000)
    return sorted(str(path) for path in Path(folder).iterdir())


def write_fragment(ticket: tallymark.WriteTicket, path: str, task: int) -> tallymark.TaskReport:
    """Runs in a process of the pool: the ticket travels there, the report travels back."""
    return tallymark.write_task(ticket, ds.dataset(path).to_batches(), task=task)


async def main(folder: str) -> None:
    paths = make_input(tempfile.mkdtemp(prefix="tallymark-input-"))
    table = tallymark.open_table(folder)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        async with table.write(schema=ds.dataset(paths).schema, mode="append", partition_by=["month"]) as job:
            run = asyncio.get_running_loop().run_in_executor
            tasks = [run(pool, write_fragment, job.ticket, path, task) for task, path in enumerate(paths)]
            result = await job.commit(await asyncio.gather(*tasks))
    print(f"{result.rows} rows in {result.files} files, {result.markers} markers in {result.puts} puts: {folder}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tallymark-")))
