"""Jars of Maven Central, fetched by the Ivy that PySpark ships and kept in the user's cache directory.

Each list of coordinates is closed: nothing is resolved beyond it, so that what runs is what is written down, and a
fetch costs one request a jar and its checksum.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

FETCH_TIMEOUT_S = 300.0
"""60 MB in a hundred requests, one after the other, take about 20 s."""

BARE = ("com.globalmentor:hadoop-bare-naked-local-fs:0.1.0",)
"""Hadoop's own local file system starts a ``chmod`` for each file and folder it makes, unless its native library is
there, which PySpark lacks: three processes a file, seconds of CPU for 300 files. This one sets permissions by Java's
own calls and is the same otherwise. Every side has it, so that what is compared is writing."""

BARE_CONF = {"spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"}


def fetch(coordinates: Sequence[str], cache: Path) -> list[Path]:
    """The jars of ``org:name:version`` or ``org:name:version:classifier``, in that order.

    Several processes may ask at once. Raises OSError or SubprocessError where they can be neither found nor fetched.
    """
    folder = cache / hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:16]
    with _locked(cache):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as name:
                _retrieve(coordinates, Path(name))
                Path(name, "jars").rename(folder)
    return [folder / _file_name(coordinate) for coordinate in coordinates]


def jar_cache(owner: str = "tallymark-bench") -> Path:
    """Where they are kept; delete it at will."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / owner / "jars"


def java() -> str | None:
    """The Java to run, if there is one."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java")


def pyspark_jar(pattern: str) -> Path:
    """The one jar that PySpark ships under such a name."""
    [found] = pyspark_jars().glob(pattern)
    return found


def pyspark_jars() -> Path:
    """The folder of all that it ships."""
    home = find_spec("pyspark")
    assert home is not None
    assert home.origin is not None
    return Path(home.origin).parent / "jars"


def _retrieve(coordinates: Sequence[str], folder: Path) -> None:
    (folder / "settings.xml").write_text(_SETTINGS)
    (folder / "ivy.xml").write_text(_MODULE.format(dependencies="".join(_dependencies(coordinates))))
    done = subprocess.run(  # noqa: S603 the user's own Java
        [
            *(java() or "java", "-XX:TieredStopAtLevel=1", "-cp", str(pyspark_jar("ivy-*.jar"))),
            *("org.apache.ivy.Main", "-settings", str(folder / "settings.xml"), "-ivy", str(folder / "ivy.xml")),
            *("-cache", str(folder / "ivy")),
            *("-retrieve", f"{folder}/jars/[artifact]-[revision](-[classifier]).[ext]"),
        ],
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_S,
        check=False,
    )
    missing = [name for name in map(_file_name, coordinates) if not (folder / "jars" / name).exists()]
    if done.returncode or missing:
        raise FileNotFoundError(f"{', '.join(missing) or 'Ivy'}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def _dependencies(coordinates: Sequence[str]) -> Iterator[str]:
    """As Ivy has it: one element a module, which names its jars."""
    modules: dict[tuple[str, ...], list[str]] = {}
    for coordinate in coordinates:
        organisation, name, version, *classifiers = coordinate.split(":")
        modules.setdefault((organisation, name, version), []).append("".join(classifiers))
    for (organisation, name, version), classifiers in modules.items():
        yield f"<dependency org={quoteattr(organisation)} name={quoteattr(name)} rev={quoteattr(version)}>"
        for classifier in classifiers:
            chosen = f" m:classifier={quoteattr(classifier)}" if classifier else ""
            yield f'<artifact name={quoteattr(name)} type="jar"{chosen}/>'
        yield "</dependency>"


def _file_name(coordinate: str) -> str:
    return "-".join(coordinate.split(":")[1:]) + ".jar"


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """One process at a time."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_SETTINGS = """
<ivysettings>
  <property name="ivy.checksums" value="sha1"/>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""

_MODULE = """
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tallymark" module="bench"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
