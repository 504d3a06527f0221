"""The Java of tests and its options, and jars of Maven Central, kept in the user's cache directory."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tallymark.bench import jars as bench
from tallymark.bench.jars import fetch, pyspark_jar

__all__ = ["jars", "java", "fetch", "jar_cache", "pyspark_jar"]

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compile quickly rather than well: 40 % of a short session's CPU."""

QUICK_JAVA = {"JAVA_TOOL_OPTIONS": QUICK_START}
"""The environment in which every Java does; each reports it on its stderr."""


def jars(coordinates: Sequence[str]) -> list[Path]:
    """As ``fetch``, but skips the test where they can be neither found nor fetched; fails it in CI."""
    try:
        return fetch(coordinates, jar_cache())
    except (OSError, subprocess.SubprocessError) as error:
        if os.environ.get("CI"):
            raise  # CI runs these tests
        pytest.skip(f"jars cannot be fetched from Maven Central: {error}")


def jar_cache() -> Path:
    """Where they are kept; delete it at will."""
    return bench.jar_cache("tallymark-tests")


def java() -> str:
    """The Java to run. Skips the test without one; fails it in CI."""
    found = bench.java()
    if not found:
        assert not os.environ.get("CI"), "CI runs these tests: give it a Java"
        pytest.skip("no Java: put one on PATH or set JAVA_HOME")
    return found
