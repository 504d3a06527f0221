"""Joint end of Spark's tasks and the engine's job: each ends when the other does."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any

from pyspark.sql import SparkSession

from tallymark.engine.errors import TallymarkError
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.spark_glue.session import is_connected


@asynccontextmanager
async def lost_with_tasks(
    write_job: AbstractAsyncContextManager[WriteJob], session: SparkSession, tag: str
) -> AsyncIterator[WriteJob]:
    """Yield the job; if it is lost while tasks run, as by a rollback, cancel them: their results no longer count."""
    try:
        async with write_job as job:
            yield job
    except TallymarkError:
        with suppress(Exception):  # Spark may be gone, too; the job's own error says more
            _cancel_tagged(session, tag)
        raise


@contextmanager
def tagged(session: SparkSession, tag: str) -> Iterator[None]:
    """Tag the Spark jobs of this thread during the block, so that they can be cancelled by the tag."""
    tags: Any = session if is_connected(session) else session.sparkContext
    add, remove = (tags.addTag, tags.removeTag) if is_connected(session) else (tags.addJobTag, tags.removeJobTag)
    add(tag)
    try:
        yield
    finally:
        remove(tag)


def _cancel_tagged(session: SparkSession, tag: str) -> None:
    """Cancel Spark's jobs with the tag."""
    if is_connected(session):
        session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)
