"""PySpark, thinly: what any other engine could do with the same tickets and reports.

``write.write`` -> ``schema``, ``storage_options`` -> a job on the engine's own thread (``driver``) -> ``stage`` (one
action) -> commit; ``read.read``; ``catalog.sync_catalog``.

Nothing is imported here: tasks import ``stage``, and need nothing of what only a driver does.
"""

from tallymark.engine.errors import MissingExtra

try:
    import pyspark as _pyspark  # noqa: F401
except ImportError as error:
    raise MissingExtra("PySpark is not installed; on a laptop: pip install 'tallymark[pyspark]'") from error
