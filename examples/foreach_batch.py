"""Structured streaming, each batch once: the query dies between a commit and its checkpoint, and is started again."""

import os
import sys
import tempfile

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import tallymark


def run_query(spark: SparkSession, folder: str, *, dies_in: int | None = None) -> None:
    def write_batch(batch: DataFrame, number: int) -> None:
        result = tallymark.write(batch, f"{folder}/clicks", mode="append", txn=f"clicks:{number}")
        print(f"batch {number}: {'committed before' if result.is_rerun else f'wrote {result.rows} rows'}")
        assert number != dies_in, "dead before Spark has noted that the batch is done"

    clicks = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(f"{folder}/input")
    writer = clicks.writeStream.option("checkpointLocation", f"{folder}/checkpoint").foreachBatch(write_batch)
    writer.trigger(availableNow=True).start().awaitTermination()


def main(folder: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks run in this Python, not in PATH's python3
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")  # a query that dies is part of the example
    spark.range(300).repartition(3).write.parquet(f"{folder}/input")  # three files, a batch each
    try:
        run_query(spark, folder, dies_in=1)
    except StreamingQueryException:
        run_query(spark, folder)  # goes on from its checkpoint, with the batch that it died in
    written = tallymark.read(spark, f"{folder}/clicks")
    print(f"{written.count()} rows in {folder}/clicks, {written.distinct().count()} of them different")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tallymark-"))
