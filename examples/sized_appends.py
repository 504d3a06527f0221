"""Small appends, each of which fills the small files that the last one has left: Arrow tables, no Spark and no Java."""

import asyncio
import sys
import tempfile

import pyarrow as pa

import tallymark

APPENDS = 20


def readings(hour: int) -> pa.Table:
    """One hour's, of two stations."""
    return pa.table({"station": [0, 1] * 500, "reading": range(hour * 1000, hour * 1000 + 1000)})


async def append(table: tallymark.Table, rows: pa.Table) -> tallymark.WriteResult:
    sizing = tallymark.SizingSettings()
    async with table.write(schema=rows.schema, mode="append", partition_by=["station"], sizing=sizing) as job:
        profile = await asyncio.to_thread(tallymark.profile_batches, job.ticket, rows)
        plan = await job.size(profile)
        report = await asyncio.to_thread(tallymark.write_task, job.ticket, rows, task=0, planned=plan.files)
        return await job.commit([report])


async def main(folder: str) -> None:
    table = tallymark.open_table(folder)
    for hour in range(APPENDS):
        result = await append(table, readings(hour))
        print(f"hour {hour}: {result.files} files written, {result.removed_files} small ones filled")
    sizes = await table.files()
    print(f"{sizes.rows} rows in {sizes.files} files after {APPENDS} appends: {folder}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tallymark-")))
