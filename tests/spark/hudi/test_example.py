"""The example of Hudi on Tallymark's markers, as a user runs it."""

import re

from tallymark.bench.peers.timeline_server import HUDI_JARS
from tests.examples.test_examples import run
from tests.spark.hudi.jobs import MARKS
from tests.support.jars import jars, java

pytestmark = MARKS


def test_hudi_markers_survive_the_service_and_the_job_goes_on(tmp_path):
    java()
    [jar] = jars(HUDI_JARS)
    printed = run(
        "hudi_markers.py", tmp_path, SPARK_LOCAL_IP="127.0.0.1", PYSPARK_SUBMIT_ARGS=f"--jars {jar} pyspark-shell"
    )
    match = re.search(r"(\d+) markers were acked, such as month \d+/\S+\.parquet\.marker\.CREATE; then", printed)
    assert match
    assert int(match[1]) > 0
    for line in (
        f"it has started again, and returns {match[1]} of them",
        "the job has written 12000 rows, 12000 of them different",
        f"0 markers are left in {tmp_path}/lake/flights",
    ):
        assert line in printed.splitlines()
