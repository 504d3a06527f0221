"""Step 4: four readers agree with the input, to the last figure."""

import time
from collections.abc import Callable

from demo.readers import Checksum, duckdb_directory, hudi_table, of_arrow, spark_directory, tallymark_read
from demo.scene import Scene


def tell(scene: Scene) -> None:
    with scene.step(4, "Read the table with four readers and compare with the input"):
        spark, table, schema = scene.spark, scene.table, scene.expected.schema
        readers: dict[str, Callable[[], Checksum]] = {
            "Spark, spark.read.parquet": lambda: spark_directory(spark, table, schema),
            "DuckDB, read_parquet": lambda: duckdb_directory(table, schema),
            "hudi-rs": lambda: hudi_table(table, schema),
            "tallymark.read": lambda: tallymark_read(spark, table, schema),
        }
        wanted = of_arrow(scene.expected)
        rows = [_row(scene, "the input, corrected", wanted, "")]
        for name, read in readers.items():
            began = time.monotonic()
            with scene.report.working(name):
                found = read()
            rows.append(_row(scene, name, found, f"{time.monotonic() - began:.1f}"))
            claim = f"{name}: 12 months x {len(schema)} columns, sums and nulls"
            scene.checks.that(claim, found == wanted, _verdict(found, wanted))
        scene.report.say("The checksum is over rows, sums and nulls of every column in every month.")
        scene.report.table(["reader", "rows", "months", "sum(dep_delay)", "nulls", "checksum", "seconds"], rows)


def _row(scene: Scene, name: str, found: Checksum, seconds: str) -> tuple[str, int, int, int, int, str, str]:
    delay = 1 + 2 * scene.expected.schema.get_field_index("dep_delay")
    return (name, found.rows, len(found.months), found.total(delay), found.total(delay + 1), found.digest, seconds)


def _verdict(found: Checksum, wanted: Checksum) -> str:
    if found == wanted:
        return f"as in the input ({found.digest})"
    months = [
        month
        for month in sorted({*found.months, *wanted.months})
        if found.months.get(month) != wanted.months.get(month)
    ]
    return f"{found.rows:,} rows, input {wanted.rows:,}; months that differ: {', '.join(map(str, months))}"
