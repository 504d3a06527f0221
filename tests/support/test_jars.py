"""Jars are fetched once, whoever asks."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.jars import fetch, jars, java

SMALL = ("org.slf4j:slf4j-api:1.7.36", "org.apache.hadoop:hadoop-annotations:3.4.2")


def test_two_who_ask_at_once_are_given_the_same_whole_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java()
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(jars, (SMALL, SMALL))
    assert first == second
    assert [path.name for path in first] == ["slf4j-api-1.7.36.jar", "hadoop-annotations-3.4.2.jar"]
    assert all(path.is_relative_to(tmp_path) and path.read_bytes().startswith(b"PK") for path in first)
    assert sorted(path.name for path in (tmp_path / "tallymark-tests/jars").iterdir()) == [first[0].parent.name, "lock"]


def test_a_jar_that_does_not_exist_is_named_and_nothing_is_kept(tmp_path: Path):
    java()
    with pytest.raises(FileNotFoundError, match=r"no-such-jar-1\.0"):
        fetch(("org.slf4j:no-such-jar:1.0",), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
