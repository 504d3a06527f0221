"""Spark's tasks and the engine's job, each of which ends when the other does."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress

from pyspark.sql import SparkSession

from tallymark.engine.errors import TallymarkError
from tallymark.engine.writes.write_job import WriteJob


@asynccontextmanager
async def lost_with_tasks(
    write_job: AbstractAsyncContextManager[WriteJob], session: SparkSession, tag: str
) -> AsyncIterator[WriteJob]:
    """The job; where it is lost while tasks run, as by a rollback, Spark is to stop them: nobody waits for them."""
    try:
        async with write_job as job:
            yield job
    except TallymarkError:
        with suppress(Exception):  # Spark may be gone, too; the job's own error says more
            session.sparkContext.cancelJobsWithTag(tag)
        raise


@contextmanager
def tagged(session: SparkSession, tag: str) -> Iterator[None]:
    """What this thread runs within the block can be cancelled by the tag."""
    session.sparkContext.addJobTag(tag)
    try:
        yield
    finally:
        session.sparkContext.removeJobTag(tag)
