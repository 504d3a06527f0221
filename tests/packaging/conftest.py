import pytest

from tests.packaging.distribution import Distribution, Environment, build


@pytest.fixture(scope="session")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    return build(tmp_path_factory.mktemp("distribution"))


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment without Tallymark."""
    return Environment.make(tmp_path_factory.mktemp("bare") / "venv")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, distribution: Distribution) -> Environment:
    """An environment with the wheel."""
    environment = Environment.make(tmp_path_factory.mktemp("installed") / "venv")
    environment.install(distribution.wheel)
    return environment
