"""Hudi's own writers on Tallymark's markers, from PySpark (docs/hudi.md)."""

from tallymark.spark_glue.hudi import markers

__all__ = ["markers"]
