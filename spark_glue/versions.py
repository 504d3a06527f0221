"""Differences between the supported Sparks, 3.5 to 4.3; the rest of the glue is the same for each."""

import inspect
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyspark.sql
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas import types
from pyspark.sql.types import StructField, StructType

_classic: ModuleType
try:
    import pyspark.sql.classic.dataframe as _classic  # Spark 4: DataFrame is what classic and Connect share
except ImportError:
    _classic = pyspark.sql  # Spark 3.5: the classic one bears the name

ClassicDataFrame: type[DataFrame] = _classic.DataFrame
"""A DataFrame of a session with a JVM of this process, not of a Connect client."""

_IN_UTC = {"timezone": "UTC"} if "timezone" in inspect.signature(types.to_arrow_schema).parameters else {}
"""Spark 4.2 needs a setting for what the others assume: moments are exchanged in UTC."""


def arrow_field(column: StructField) -> "pa.Field[Any]":
    """Return a column as Spark passes it to tasks. Raises Spark's own errors, of several classes in its versions."""
    to_arrow_schema: Any = types.to_arrow_schema
    field: pa.Field[Any] = to_arrow_schema(StructType([column]), **_IN_UTC).field(0)
    return field


def dataframe_of(plan: Any, session: SparkSession) -> DataFrame:
    """Return a logical plan of the JVM as a DataFrame of a classic session."""
    sql: Any = session.sparkContext._jvm
    sql = sql.org.apache.spark.sql
    package = sql.classic if ClassicDataFrame is not DataFrame else sql
    return DataFrame(package.Dataset.ofRows(session._jsparkSession, plan), session)


def scala_sequence(values: Any, session: SparkSession) -> Any:
    """Return a list of the JVM as Scala's, whose own converters differ between its versions."""
    jvm: Any = session.sparkContext._jvm
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(values)
