"""Errors of failed Spark tasks, each as one line."""

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tallymark.engine.errors import InvalidRequest, JobFailed, TallymarkError
from tallymark.spark_glue import bootstrap

PROBE_TASK_COUNT = 64
"""Maximum number of tasks that search for the Python without the module: each takes milliseconds, and several run per
host.
"""

REMEDY = (
    "executors need what the driver has: install it where they run, point PYSPARK_PYTHON at a Python that has it, "
    "or ship it by --py-files or --archives (docs/deploying.md)"
)


@contextmanager
def own_errors(session: SparkSession) -> Iterator[None]:
    """Convert errors of Spark: raise JobFailed, or InvalidRequest where a task raised that."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _own_error(error, session) from None


def _own_error(error: Exception, session: SparkSession) -> TallymarkError:
    """Return the task's error message instead of pages of Python and Java stacks; those are in ``details``."""
    text = str(error)
    raised = _LAST_WORD.findall(_worker_traceback(text))
    if not raised:
        return JobFailed(f"Spark gave up on a task: {_jvm_word(error, text)}", details=text)
    name, message = raised[-1]
    if name == f"{InvalidRequest.__module__}.{InvalidRequest.__name__}":
        return InvalidRequest(message)
    if name in ("ImportError", "ModuleNotFoundError"):
        return JobFailed(f"Spark gave up on a task: {_import_word(name, message, session)}; {REMEDY}", details=text)
    said = ": ".join(filter(None, (name.rpartition(".")[2], message)))
    return JobFailed(f"Spark gave up on a task: {said}", details=text)


_LAST_WORD = re.compile(r"^[ ]+.*\n([A-Za-z_][\w.]*)(?:: (.*))?$", flags=re.MULTILINE)
"""The first line after a Python stack: the exception's class, and the first line of its message."""


def _worker_traceback(text: str) -> str:
    """Return the Python part of Spark's message, which is before the JVM's stack."""
    return text.partition("Traceback (most recent call last):")[2].partition("\n\tat ")[0]


def _jvm_word(error: Exception, text: str) -> str:
    """Return the message where no Python code raised: a worker was lost, or the JVM's own code failed."""
    lost = re.search(r"most recent failure: (.+)", text)
    return lost[1] if lost else f"{type(error).__name__}: {_first_line(text)}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _import_word(name: str, message: str, session: SparkSession) -> str:
    """Return which Python cannot import which module. The task's first lines report it, unless Spark's own worker
    failed before.
    """
    lacked = re.match(r"No module named '(\w+)", message)
    found = _find_lacking(session, lacked[1]) if lacked else None
    return found or (message if name == "ImportError" else f"{name}: {message}")


def _find_lacking(session: SparkSession, module: str) -> str | None:
    """Run tasks that need nothing but Python, until one reports that it cannot import the module."""
    with suppress(Exception):  # the job has failed already; this is to explain it, where it can
        context = session.sparkContext
        count = min(PROBE_TASK_COUNT, 2 * context.defaultParallelism)
        look = functools.partial(bootstrap.by_value(bootstrap.look), module)
        words: list[str | None] = context.parallelize(range(count), count).mapPartitions(look).collect()
        return next(filter(None, words), None)
    return None
