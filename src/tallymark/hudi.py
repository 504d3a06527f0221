"""Hudi's own writers on Tallymark's markers, from PySpark (docs/hudi.md)."""

from tallymark.engine.serve.hudi_options import hudi_options as options
from tallymark.spark_glue.hudi import markers

__all__ = ["markers", "options"]
