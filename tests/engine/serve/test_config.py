"""The file of ``tallymark serve``: what it says, what the command line adds, and everything that is wrong with it."""

import resource
from dataclasses import replace
from pathlib import Path

import pytest

from tallymark.backends.options import StorageOptions
from tallymark.engine.serve.config import ConfigErrors, load_config
from tallymark.engine.serve.descriptors import within_descriptors
from tallymark.engine.serve.roots import Root

WHOLE = """
[[roots]]
url = "s3a://lake/sales"
storage = {region = "eu-west-1", request_count_max = 8}

[[roots]]
url = "/data/lake"

[jobs]
host = "127.0.0.1"
port = 0
secret = "/etc/secret"
drain_s = 9.5

[service]
memory_mb = 64
log_format = "json"

[[hudi]]
port = 1
networks = ["10.1.0.0/16"]
host = "10.1.2.3"
roots = ["/data/lake"]

[[hudi]]
port = 2

[markers]
worker_count = 3

[views]
memory_bytes = 1000
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "serve.toml"
    path.write_text(text)
    return path


def test_each_key_is_a_field_of_its_settings(tmp_path):
    config = load_config(written(tmp_path, WHOLE))
    assert config.roots.places == ["/data/lake", "s3://lake/sales"]
    assert config.roots._options["s3://lake/sales"] == StorageOptions(region="eu-west-1", request_count_max=8)
    assert (config.jobs.port, config.jobs.drain_s, config.secret) == (0, 9.5, Path("/etc/secret"))
    assert [(each.settings.port, each.settings.networks, each.roots.places) for each in config.hudi] == [
        (1, ("10.1.0.0/16",), ["/data/lake"]),
        (2, (), ["/data/lake", "s3://lake/sales"]),
    ]
    assert (config.markers.worker_count, config.views.memory_bytes, config.views.store) == (3, 1000, "spillable")
    assert (config.service.memory_mb, config.service.log_format, config.service.log_level) == (64, "json", "info")


def test_the_command_line_adds_roots_and_counts_before_the_file(tmp_path):
    config = load_config(
        written(tmp_path, WHOLE), roots=[Root("/other")], jobs={"port": 5, "secret": "/mine"}, hudi={"views": "h:1"}
    )
    assert config.roots.places == ["/data/lake", "/other", "s3://lake/sales"]
    assert (config.jobs.port, config.jobs.drain_s, config.secret) == (5, 9.5, Path("/mine"))
    assert [each.settings.views for each in config.hudi] == ["h:1", "h:1"]


def test_there_can_be_no_listener_for_hudi(tmp_path):
    file = written(tmp_path, 'hudi = []\n[[roots]]\nurl = "/data"')
    assert load_config(file).hudi == ()
    with pytest.raises(ConfigErrors, match="an option of the command line is for one"):
        load_config(file, hudi={"port": 5})


def test_of_one_place_in_two_forms_the_command_lines_options_count_if_it_has_any(tmp_path):
    file = written(tmp_path, '[[roots]]\nurl = "s3a://lake/sales"\nstorage = {region = "eu-west-1"}')
    for options, region in ((StorageOptions(region="mine"), "mine"), (StorageOptions(), "eu-west-1")):
        roots = load_config(file, roots=[Root("s3://lake/sales/", options)]).roots
        assert (roots.places, roots._options["s3://lake/sales"]) == (["s3://lake/sales"], StorageOptions(region=region))


def test_all_listeners_share_half_of_the_descriptors(tmp_path, caplog):
    config = load_config(written(tmp_path, WHOLE))
    assert within_descriptors(config, 1 << 20) is config
    assert within_descriptors(config, resource.RLIM_INFINITY) is config
    assert caplog.text == ""
    limited = within_descriptors(config, 1000)
    counts = [limited.jobs.connection_count, limited.jobs.driver_count]
    counts += [each.settings.connection_count for each in limited.hudi]
    assert counts == [163, 10, 163, 163]
    assert replace(limited, jobs=config.jobs, hudi=config.hudi) == config
    assert "wanted=12544 allowed=500" in caplog.text


def test_without_a_file_the_command_line_is_enough():
    config = load_config(None, roots=[Root("/data")])
    assert config.roots.places == ["/data"]
    assert [each.roots.places for each in config.hudi] == [["/data"]]
    assert config.secret is None


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("x =", ["cannot be read"]),
        ("", ["no root is given"]),
        ('[[roots]]\nurl = "lake"', ["'lake' is not an absolute path"]),
        ("[[roots]]\n", ["has no url", "no root is given"]),
        ('[roots]\nurl = "/a"', [r"write \[\[roots\]\]", "no root is given"]),
        ('[[roots]]\nurl = "/a"\n[job]\nport = 1', ["job is not known; jobs is meant, perhaps"]),
        ('[[roots]]\nurl = "/a"\n[jobs]\nprot = 1', [r"\[jobs\] prot is not known; port is meant, perhaps"]),
        ('[[roots]]\nurl = "/a"\n[jobs]\nport = "x"\n[markers]\nworker_count = 0', ["port is between", "worker_count"]),
        ('[[roots]]\nurl = "/a"\n[jobs]\nhost = "10.1.2.3"', ["unless tls_cert, tls_key and tokens are given"]),
        ('[[roots]]\nurl = "/a"\nstorage = {regoin = "x"}', [r"\[roots.storage\] regoin is not known; region"]),
        ('[[roots]]\nurl = "/a"\nstorage = {credentials = "AKIA"}', ["credentials names a provider"]),
        ('[[roots]]\nurl = "/a"\n[[hudi]]\nroots = ["/b"]', ["'/b' is none of the roots", "no root is given"]),
        ('[[roots]]\nurl = "/a"\n[[hudi]]\nroots = 5', ["roots is not a list of texts"]),
        ('[[roots]]\nurl = "/a"\n[[hudi]]\nhost = "0.0.0.0"', ["unless networks says who is served"]),
        ('[[roots]]\nurl = "/a"\n[jobs]\ntokens = 5', ["setting tokens=5: tokens is a text"]),
        ('[[roots]]\nurl = "/a"\n[jobs]\nsecret = 5', ["secret=5 is not the path of a file"]),
        ('[[roots]]\nurl = "/a"\n[jobs]\nport = 26756', ["port 26756 is of two listeners"]),
        ('[[roots]]\nurl = "/a"\n[[hudi]]\n[[hudi]]', ["port 26754 is of two listeners"]),
    ],
)
def test_everything_that_is_wrong_is_named_at_once(tmp_path, text, problems):
    with pytest.raises(ConfigErrors) as raised:
        load_config(written(tmp_path, text))
    assert len(raised.value.problems) == len(problems), raised.value.problems
    for problem in problems:
        assert raised.match(problem)
    assert "serve.toml" in str(raised.value)


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(ConfigErrors, match=r"missing.toml: cannot be read"):
        load_config(tmp_path / "missing.toml")
