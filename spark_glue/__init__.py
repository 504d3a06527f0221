"""PySpark, thinly: what any other engine could do with the same tickets and reports.

``write`` -> ``schema``, ``storage_options`` -> a job on the engine's own thread (``driver``) -> ``stage`` (one action)
-> commit; ``read``.
"""

from tallymark.engine.errors import MissingExtra

try:
    import pyspark as _pyspark  # noqa: F401
except ImportError as error:
    raise MissingExtra("PySpark is not installed; on a laptop: pip install 'tallymark[pyspark]'") from error

from tallymark.spark_glue.catalog import sync_catalog
from tallymark.spark_glue.read import read
from tallymark.spark_glue.write import write

__all__ = ["write", "read", "sync_catalog"]
