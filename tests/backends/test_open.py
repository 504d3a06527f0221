"""From a URL to a backend."""

import os
from pathlib import Path

import pytest

from tallymark.backends import InvalidPath, open_backend
from tallymark.backends.local import LocalBackend
from tallymark.backends.memory import MemoryBackend


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("/data/flights", "/data/flights"),
        ("/data/a b", "/data/a b"),
        ("/data/100%25", "/data/100%25"),
        ("/data/s3:x", "/data/s3:x"),
        ("//data//flights/", "//data/flights"),
        ("file:/data/flights", "/data/flights"),
        ("file:///data/flights", "/data/flights"),
        ("file://localhost/data/flights", "/data/flights"),
        ("FILE:///data/flights", "/data/flights"),
        ("file:///data/a%20b%2525", "/data/a b%25"),
        ("file:///data/a b", "/data/a b"),
        ("file:///data/what?#1", "/data/what?#1"),
        ("file:///data/S%C3%A3o", "/data/São"),
        ("file:///data/%FF", "/data/\udcff"),
    ],
)
def test_a_path_or_file_url_is_a_directory(url, root):
    backend = open_backend(url)
    assert isinstance(backend, LocalBackend)
    assert repr(backend) == f"<LocalBackend {root}>"


@pytest.mark.parametrize("path", ["flights", "./s3:x", "year=1:2/x", "1:2"])
def test_a_relative_path_is_below_the_working_directory_as_it_was_when_opened(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    backend = open_backend(path)
    monkeypatch.chdir("/")
    assert repr(backend) == f"<LocalBackend {tmp_path / path}>"


@pytest.mark.parametrize("name", ["a b", "%41", "what?", "#1", "São", "\udcff", "semi;colon", "[x]", "a:b", "+"])
def test_the_url_of_a_directory_of_any_name_opens_that_directory(name, tmp_path):
    root = tmp_path / name
    url = LocalBackend(root).url
    assert url.startswith("file:///")
    assert url.isascii()
    assert repr(open_backend(url)) == f"<LocalBackend {root}>"


def test_a_path_object_is_a_directory_whatever_it_is_named(tmp_path):
    assert repr(open_backend(tmp_path / "file:a")) == f"<LocalBackend {tmp_path / 'file:a'}>"


@pytest.mark.parametrize("url", ["memory:", "memory:/", "memory://", "MEMORY:"])
def test_memory_is_a_new_store_each_time(url):
    first, second = open_backend(url), open_backend(url)
    assert isinstance(first, MemoryBackend)
    assert first is not second
    assert first.url == "memory:"


@pytest.mark.parametrize(
    ("urls", "rule"),
    [
        (["memory:shared"], "pass the backend itself"),
        (
            ["ftp://host/x", "s4:bucket", "http://[half", "data:,x"],
            "unknown scheme .* file:, .*memory:, .*and plain paths",
        ),
        (["file:", "file:relative", "file://", "file://host/x", "file://host"], "absolute path of this machine"),
        (["", "/data/\0", "file:///data/%00"], "."),
        (["~", "~/t"], "not expanded"),
        ([None], "None"),
        ([5], "5"),
    ],
)
def test_what_names_no_place_or_another_than_meant_is_refused_with_the_rule(urls, rule):
    for url in urls:
        with pytest.raises(InvalidPath, match=rule):
            open_backend(url)


def test_opening_does_nothing_on_disk(tmp_path: Path):
    open_backend(str(tmp_path / "x"))
    assert os.listdir(tmp_path) == []  # noqa: PTH208


@pytest.mark.parametrize(
    "url",
    [
        "https://bucket.s3.amazonaws.com/t?X-Amz-Signature=canary",
        "s4://key:canary@bucket/t",
        "gcs://key:canary@bucket/t",
        "gs://key:canary@bucket/t",
        "s3://key:canary@bucket/t",
        "s3://bucket?token=canary",
        "hdfs://user:canary@host/t",
        "file://user:canary@host/t",
    ],
)
def test_what_may_be_a_secret_in_a_url_is_not_repeated(url):
    with pytest.raises(InvalidPath) as refusal:
        open_backend(url)
    assert "canary" not in str(refusal.value)
