"""Check of the calling thread: blocking calls are refused in a thread that runs an event loop."""

from contextlib import suppress

import anyio

from tallymark.engine.errors import InvalidRequest


def check_may_block(call: str) -> None:
    """Raise InvalidRequest, naming the call, in a thread that runs an event loop."""
    with suppress(RuntimeError):  # no loop runs in this thread, as it should be
        anyio.get_current_task()
        raise InvalidRequest(
            f"{call} blocks, and this thread runs an event loop, or was forked from one that does, perhaps the one "
            "that serves the job's markers; call it in another: await anyio.to_thread.run_sync(...), "
            "asyncio.to_thread(...), or an executor; start workers by spawn or forkserver"
        )
