import tarfile

import tallymark
from tests.packaging.distribution import contents, modules_of_this_tree


def test_wheel_is_the_same_byte_for_byte_through_the_sdist(distribution):
    assert contents(distribution.wheel) == contents(distribution.wheel_through_sdist)
    assert distribution.wheel.name == distribution.wheel_through_sdist.name


def test_wheel_holds_every_module_once_and_nothing_else(distribution):
    names = [name for name, _ in contents(distribution.wheel)]
    ours = [name for name in names if not name.startswith(f"tallymark-{tallymark.__version__}.dist-info/")]
    assert sorted(ours) == sorted(modules_of_this_tree())
    assert len(names) == len(set(names))


def test_sdist_holds_each_source_once_and_no_tests(distribution):
    with tarfile.open(distribution.sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert len(names) == len(set(names))
    assert {name.partition("/")[0] for name in names} == {
        *("src", "engine", "backends", "spark_glue", "bench"),
        *("README.md", "CHANGELOG.md", "LICENSE", "PKG-INFO", "pyproject.toml", ".gitignore"),
    }
    assert not [name for name in names if name.startswith(("src/tallymark/engine/", "src/tallymark/backends/"))]


def test_wheel_offers_the_command_and_the_spark_extra(distribution):
    metadata = {
        name.rpartition("/")[2]: data.decode() for name, data in contents(distribution.wheel) if "dist-info" in name
    }
    assert "tallymark = tallymark.cli:main" in metadata["entry_points.txt"]
    assert "Provides-Extra: pyspark\n" in metadata["METADATA"]
    assert f"Version: {tallymark.__version__}" in metadata["METADATA"]
