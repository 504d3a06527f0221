"""A reader under a lease, in a process of its own: cleans go around it while it lives, and not once it is killed."""

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pyarrow as pa

import tallymark
from tests.support.storage import data_files

READER = """
import sys
import anyio
import tallymark

async def main():
    async with tallymark.open_table(sys.argv[1]).reading(as_of=1) as snapshot:
        print(len(snapshot.files), flush=True)
        await anyio.sleep_forever()

anyio.run(main, backend="trio")
"""

SCHEMA = pa.schema([("flight", pa.int64())])


async def write(folder: Path, mode) -> None:
    table = tallymark.open_table(folder)
    async with table.write(schema=SCHEMA, mode=mode, readers="table") as job:
        rows = pa.table({"flight": [1, 2]}, schema=SCHEMA)
        report = await anyio.to_thread.run_sync(lambda: tallymark.write_task(job.ticket, rows.to_batches(), task=0))
        await job.commit([report])


async def clean(folder: Path) -> tuple[int, list[int]]:
    """How many files have gone, and whose processes hold some."""
    result = await tallymark.open_table(folder).clean(retain_hours=0)
    return result.files, [reader.process.pid for reader in result.readers]


def test_what_a_reader_holds_stays_while_its_process_lives_and_goes_at_once_when_it_was_killed(tmp_path):
    folder = tmp_path / "flights"
    for mode in ("append", "overwrite"):
        anyio.run(write, folder, mode, backend="trio")
    before = data_files(folder)
    with subprocess.Popen([sys.executable, "-c", READER, str(folder)], stdout=subprocess.PIPE, text=True) as reader:
        try:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "1\n"
            assert anyio.run(clean, folder, backend="trio") == (0, [reader.pid])
            assert data_files(folder) == before
        finally:
            reader.send_signal(signal.SIGKILL)
            reader.wait()
    assert anyio.run(clean, folder, backend="trio") == (1, [])
    assert len(data_files(folder)) == 1
    assert list((folder / ".hoodie/.tallymark/read").glob("*")) == []
