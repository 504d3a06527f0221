"""Change data capture: events of Debezium keep a table as the database is, though the query dies on the way."""

import json
import os
import sys
import tempfile
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import tallymark

EVENT = (
    "op string, before struct<id: long, name: string>, after struct<id: long, name: string>, source struct<lsn: long>"
)
STORED = ["coalesce(after.id, before.id) AS id", "after.name", "source.lsn", "op = 'd' AS is_deleted"]
BATCHES = [  # op, lsn (the position in the database's log), id, name
    [("c", 1, 1, "Ada"), ("c", 2, 2, "Bo"), ("u", 3, 1, "Ann")],
    [("u", 5, 2, "Bob"), ("d", 6, 1, "Ann"), ("c", 7, 3, "Cy")],
    [("u", 4, 2, "Bill"), ("u", 8, 3, "Cyd")],  # the first arrives late: it is older than what is stored
]


def make_events(folder: Path) -> None:
    folder.mkdir()
    for number, batch in enumerate(BATCHES):
        lines = []
        for op, lsn, id_, name in batch:
            rows = {"before" if op == "d" else "after": {"id": id_, "name": name}}
            lines.append(json.dumps({"op": op, "source": {"lsn": lsn}, **rows}))
        (folder / f"{number}.json").write_text("\n".join(lines))
        os.utime(folder / f"{number}.json", (number, number))  # Spark takes the oldest first


def run_query(spark: SparkSession, folder: str, *, dies_in: int | None = None) -> None:
    def write_batch(batch: DataFrame, number: int) -> None:
        result = tallymark.write(
            batch.selectExpr(*STORED),
            f"{folder}/people",
            mode="upsert",
            record_key=["id"],
            order_by="lsn",
            readers="table",
            delete_column="is_deleted",
            txn=f"people:{number}",
        )
        print(f"batch {number}: {'committed before, ' if result.is_rerun else ''}{result.changes}")
        assert number != dies_in, "dead before Spark has noted that the batch is done"

    events = spark.readStream.schema(EVENT).option("maxFilesPerTrigger", 1).json(f"{folder}/events")
    writer = events.writeStream.option("checkpointLocation", f"{folder}/checkpoint").foreachBatch(write_batch)
    writer.trigger(availableNow=True).start().awaitTermination()


def main(folder: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks run in this Python, not in PATH's python3
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")  # a query that dies is part of the example
    make_events(Path(folder, "events"))
    try:
        run_query(spark, folder, dies_in=1)
    except StreamingQueryException:
        run_query(spark, folder)  # goes on from its checkpoint, with the batch that it died in
    tallymark.read(spark, f"{folder}/people").orderBy("id").show()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tallymark-"))
