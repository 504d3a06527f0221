"""Tests without Spark and without a store's server are collected without the modules of these."""

import subprocess
import sys

from tests.support.process import ROOT

HEAVY = ("boto3", "hdfs_native", "moto", "py4j", "pyspark")

COLLECT = f"""
import sys
import pytest
pytest.main([*sys.argv[1:], "--collect-only", "-q", "-p", "no:cacheprovider"])
print(sorted(sys.modules.keys() & set({HEAVY})))
"""


FOLDERS = ("cli", "docs", "engine", "fuzz", "simulation", "stores")


def test_collection_imports_neither_spark_nor_a_servers_library() -> None:
    collect = [sys.executable, "-c", COLLECT, *(f"tests/{folder}" for folder in FOLDERS)]
    collected = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert "tests collected" in collected.stdout
    assert collected.stdout.splitlines()[-1] == "[]"
