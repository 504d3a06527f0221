"""``--storage KEY=VALUE``, on every command."""

from typing import Any

import click
import pytest

from tallymark.backends import StorageOptions
from tallymark.cli import command, storage
from tests.cli.scene import run, write


def parsed(*pairs: str) -> StorageOptions:
    return storage.parse(click.Context(command.main), click.Option(["--storage"]), pairs)


@pytest.mark.parametrize(
    ("pair", "wanted"),
    [
        ("endpoint=https://minio.example:9000", {"endpoint": "https://minio.example:9000"}),
        ("region=eu-central-1", {"region": "eu-central-1"}),
        ("path_style=True", {"path_style": True}),
        ("path_style=false", {"path_style": False}),
        ("connect_timeout_s=2.5", {"connect_timeout_s": 2.5}),
        ("request_count_max=8", {"request_count_max": 8}),
        ("credentials=package.module:function", {"credentials": "package.module:function"}),
        ("hadoop.dfs.nameservices=ha", {"hadoop": (("dfs.nameservices", "ha"),)}),
        ("ca_file=/a=b.pem", {"ca_file": "/a=b.pem"}),
    ],
)
def test_a_pair_becomes_an_option_of_its_type(pair: str, wanted: dict[str, Any]) -> None:
    assert parsed(pair) == StorageOptions(**wanted)


def test_several_pairs_become_one_set_of_options():
    assert parsed("hadoop.b=2", "region=x", "hadoop.a=1") == StorageOptions(region="x", hadoop=(("a", "1"), ("b", "2")))


def test_every_option_can_be_given():
    assert {key.removesuffix(".KEY") for key in storage.known()} == set(StorageOptions.__dataclass_fields__)


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("regoin=x", "regoin is not known; known are endpoint, region,"),
        ("secret_access_key=canary", "Credentials are not taken here"),
        ("hadoop=x", "hadoop is not known"),
        ("endpoint", "say KEY=VALUE"),
        ("endpoint=", "say KEY=VALUE"),
        ("path_style=maybe", "path_style is true or false"),
        ("connect_timeout_s=soon", "connect_timeout_s is a number"),
        ("request_count_max=1.5", "request_count_max is a whole number"),
        ("request_count_max=0", "request_count_max is a number above zero"),
        ("credentials=AKIACANARY", "names a provider"),
    ],
)
def test_a_wrong_pair_is_a_wrong_call_and_its_value_is_not_repeated(pair, says):
    result = run("status", "memory:", "--storage", pair)
    assert result.exit_code == 2
    words = " ".join(result.stderr.split())
    assert "Invalid value for '--storage'" in words
    assert says in words
    assert "canary" not in result.stderr.lower()


@pytest.mark.parametrize("name", ["status", "timeline", "markers", "rollback", "clean", "doctor"])
def test_every_command_takes_them(name):
    assert "--storage KEY=VALUE" in run(name, "--help").stdout


def test_a_command_opens_the_table_with_them(tmp_path, monkeypatch):
    write(tmp_path, 1)
    import tallymark.engine.table as table

    opened = []
    really = table.open_table

    def noted(url: str, options: StorageOptions) -> table.Table:
        opened.append(options)
        return really(url)

    monkeypatch.setattr(table, "open_table", noted)
    assert run("status", tmp_path, "--storage", "region=x", "--storage", "path_style=true").exit_code == 0
    assert opened == [StorageOptions(region="x", path_style=True)]
