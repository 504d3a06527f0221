"""The marker engine alone, on trio: a thousand tasks ask for a marker each, and a handful of objects hold them all."""

import sys
import tempfile

import trio

import tallymark

INSTANT = "20130101000000000"


async def write_file(directory: tallymark.MarkerDirectory, number: int) -> None:
    path = f"month={number % 12 + 1}/{number}.parquet"
    await directory.create(path)  # returns once the marker survives a crash
    # Only now may the data file be begun: whatever happens to it, its marker will lead to it.


async def main(folder: str) -> None:
    backend = tallymark.open_backend(folder)
    async with tallymark.open_marker_engine(backend, tallymark.MarkerSettings(worker_count=4)) as engine:
        directory = engine.directory(INSTANT)
        async with trio.open_nursery() as nursery:
            for number in range(1000):
                nursery.start_soon(write_file, directory, number)
        counts = engine.statistics()
        print(f"{counts.durable} markers are durable, in {counts.batches_flushed} objects of {counts.put_bytes} bytes")
        print(f"the largest batch held {counts.largest_batch}; the first of them is {(await directory.names())[0]}")
    async with tallymark.open_marker_engine(backend) as engine:  # after a crash, say
        directory = engine.directory(INSTANT)
        print(f"another engine finds {len(await directory.names())} markers in {folder}")
        print(f"and removes them: {await directory.delete()}")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tallymark-"))
