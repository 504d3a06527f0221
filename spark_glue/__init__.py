"""PySpark glue, kept thin: any other engine could do the same with tickets and reports.

``write.write`` -> ``schema``, ``storage_options`` -> a job on the engine's own thread (``driver``) -> ``stage`` (one
action) -> commit; ``read.read``; ``catalog.sync_catalog``.

Nothing is imported here: tasks import ``stage``, and need nothing that only a driver uses.
"""

from tallymark.engine.errors import MissingExtra

try:
    import pyspark as _pyspark  # noqa: F401
except ImportError as error:
    raise MissingExtra("PySpark is not installed; on a laptop: pip install 'tallymark[pyspark]'") from error
