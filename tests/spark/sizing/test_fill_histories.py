"""Whatever appends, fills and overwrites a table has been through, its readers see the rows that a plain dict says."""

import tempfile
from pathlib import Path

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from tests.engine.jobs.fill_histories import FULL, Disk, Model, histories, play
from tests.support.examples import examples
from tests.support.readers import assert_readers_agree

pytestmark = pytest.mark.spark


@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(rounds=histories)
def test_four_readers_see_what_a_plain_dict_says(spark: SparkSession, rounds) -> None:
    with tempfile.TemporaryDirectory() as directory:
        disk = Disk(Path(directory) / "table")
        states: list[Model] = []
        trio.run(play, disk, [[(FULL, 0)], *rounds], states.append)
        rows = list(states[-1].states[-1].items())
        expected = spark.createDataFrame(rows, "flight long, month int")
        if rows:
            assert assert_readers_agree(spark, disk.path, expected) == len(rows)
