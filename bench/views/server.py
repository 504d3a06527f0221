"""The process of a job whose service answers lookups: a driver that does nothing else.

One line of JSON comes in and says which table, and how its view is kept; one goes out with where to ask; one comes in
for each reading of what the process holds. It ends with its input, and rolls the job back.
"""

import functools
import json
import sys
from typing import TextIO

import anyio
import anyio.to_thread

from tallymark.bench.made_table import SCHEMA
from tallymark.bench.views.held import Spec, options_of, views_of
from tallymark.engine.table import open_table


async def main(lines: TextIO, answers: TextIO) -> None:
    asked: Spec = json.loads(lines.readline())
    table = open_table(asked["table"], options=options_of(asked), views=views_of(asked))
    async with table.write(schema=SCHEMA, mode="append") as job:
        ticket = job.ticket
        assert ticket.service is not None, "markers are batched"
        answer = {
            "host": ticket.service.host,
            "port": ticket.service.port,
            "job_key": ticket.service.job_key.hex(),
            "instant": ticket.instant,
            "position": ticket.base,
            "log_hash": ticket.base_hash,
        }
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        await anyio.to_thread.run_sync(lines.read)


if __name__ == "__main__":
    anyio.run(functools.partial(main, sys.stdin, sys.stdout), backend="trio")
