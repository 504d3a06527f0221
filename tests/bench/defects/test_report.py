import json
from datetime import UTC, datetime
from io import StringIO

from rich.console import Console

from tallymark.bench.defects.answer import DefectsAnswer, Finding
from tallymark.bench.defects.report import show
from tallymark.bench.machine import Machine

ANSWER = DefectsAnswer(
    began=datetime(2026, 11, 22, 2, 0, tzinfo=UTC),
    machine=Machine(
        cpu="A CPU", core_count=2, memory_bytes=24 << 30, kernel="Linux 6.1", python="CPython 3.11.7",
        libraries={"pyspark": "4.3.0"}, load=0.5,
    ),
    suspected={"restart": "It garbles them.", "reads": "It fails."},
    findings=(
        Finding(trial="restart", side="Hudi", tried="once", shown="yes", seen="3 lost", counts={"acked": 5}),
        Finding(trial="restart", side="Ours", tried="once", shown="no", seen="none lost", counts={"acked": 5}),
        Finding(trial="reads", side="Hudi", tried="", shown="not tried", seen="no network"),
    ),
)  # fmt: skip


def printed():
    page = StringIO()
    show(Console(file=page, width=140, highlight=False, markup=False), ANSWER)
    return [" ".join(line.split()) for line in page.getvalue().splitlines()]


def test_each_trial_stands_below_what_was_suspected_with_each_side_that_was_tried():
    lines = printed()
    restart, reads = lines.index("restart: It garbles them."), lines.index("reads: It fails.")
    assert [line for line in lines[restart:reads] if "once" in line] == [
        "Hudi once yes 3 lost",
        "Ours once no none lost",
    ]
    assert "Hudi not tried no network" in lines[reads:]


def test_the_document_keeps_all_findings_with_their_counts():
    document = json.loads(json.dumps(ANSWER.document()))
    assert document["question"] == "defects"
    assert [(row["side"], row["shown"], row["counts"]) for row in document["findings"]] == [
        ("Hudi", "yes", {"acked": 5}),
        ("Ours", "no", {"acked": 5}),
        ("Hudi", "not tried", {}),
    ]
