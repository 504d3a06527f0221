import json
from datetime import UTC, datetime
from io import StringIO

from rich.console import Console

from tallymark.bench.killed.answer import KilledAnswer, KilledRow
from tallymark.bench.killed.folder import Remains
from tallymark.bench.killed.report import show
from tallymark.bench.machine import Machine


def left(rows, directory_rows, files=0):
    return Remains(rows=rows, directory_rows=directory_rows, files=files, bytes=100 * files, temporary=2)


ANSWER = KilledAnswer(
    began=datetime(2026, 11, 21, 8, 0, tzinfo=UTC),
    machine=Machine(
        cpu="A CPU", core_count=2, memory_bytes=24 << 30, kernel="Linux 6.1", python="CPython 3.11.7",
        libraries={"pyspark": "4.3.0"}, load=0.5,
    ),
    rows_a_write=1000,
    rows=(
        KilledRow(side="v2", title="v2", executor=left(2000, 2000), job=left(1500, None, 3), job_then=left(2500, 2000)),
    ),
    absent={"Hudi": "no such Spark"},
)  # fmt: skip


def printed():
    page = StringIO()
    show(Console(file=page, width=140, highlight=False, markup=False), ANSWER)
    return [" ".join(line.split()) for line in page.getvalue().splitlines()]


def test_rows_are_right_or_as_many_too_many():
    rows = [line for line in printed() if line.startswith("v2 ")]
    assert rows == ["v2 right right 0 0 2", "v2 +500 rows an error 3 300 2", "v2 +500 rows right 0 0 2"]


def test_who_took_no_part_stands_below():
    assert printed()[-1] == "without Hudi: no such Spark"


def test_the_document_keeps_all_that_was_found():
    document = json.loads(json.dumps(ANSWER.document()))
    assert document["question"] == "killed"
    assert document["sides"][0]["job"]["directory_rows"] is None
