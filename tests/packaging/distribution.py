"""The wheel as it is built from this tree, and an environment that has it and nothing else of Tallymark."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
FOLDERS = ("engine", "backends", "spark_glue", "bench")
EVIDENCE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["exclude"]
"""Questions of the benchmark harness that stay in the repository."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """What a build has left."""

    wheel: Path
    sdist: Path
    wheel_through_sdist: Path


def build(folder: Path) -> Distribution:
    """Wheel and sdist of this tree, and the wheel that the sdist gives."""
    direct = build_wheel(ROOT, folder / "direct")
    _hatchling(ROOT, folder / "sdist", "--target", "sdist")
    sdist = _only(folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    return Distribution(direct, sdist, build_wheel(_only(folder / "unpacked"), folder / "through"))


def build_wheel(source: Path, target: Path) -> Path:
    """The wheel of these sources, in a new folder."""
    _hatchling(source, target, "--target", "wheel")
    return _only(target)


def contents(wheel: Path) -> list[tuple[str, bytes]]:
    with ZipFile(wheel) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def modules_of_this_tree() -> set[str]:
    """Every file that makes up the package, by its path in a wheel."""
    found = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()}
    folders = {path.relative_to(ROOT) for path in found if path.parent.name != "__pycache__"}
    folders = {path for path in folders if not path.as_posix().startswith(tuple(EVIDENCE))}
    front = {path.relative_to(ROOT / "src/tallymark") for path in (ROOT / "src/tallymark").glob("*.py*")}
    cli = {path.relative_to(ROOT / "src/tallymark") for path in (ROOT / "src/tallymark/cli").rglob("*.py")}
    return {f"tallymark/{path.as_posix()}" for path in folders | front | cli} | {"tallymark/py.typed"}


@dataclass(frozen=True, slots=True)
class Environment:
    """A fresh virtual environment. What it lacks of third parties it finds in the one that runs the tests."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, *, only: Iterable[str] | None = None) -> "Environment":
        """``only`` names the top-level modules of third parties that it finds; left out, it finds all."""
        venv.create(folder, symlinks=True)
        made = cls(folder)
        there = Path(sysconfig.get_path("purelib"))
        if only is None:
            # A plain line of a .pth file does not process the .pth files there, editable installs among them.
            (made.site_packages / "third_parties.pth").write_text(f"{there}\n")
        for name in only or ():
            found = next(path for path in (there / name, there / f"{name}.py") if path.exists())
            (made.site_packages / found.name).symlink_to(found)
        return made

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "lib" / version / "site-packages"

    def install(self, wheel: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check", "-q"]
        subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True, timeout=120)

    def run(self, *arguments: str | Path, cwd: Path, **variables: str | Path) -> str:
        """The output of this environment's Python, started far from the sources."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK_"))}
        ended = subprocess.run(
            [self.python, *arguments],
            cwd=cwd,
            env={**environment, **{name: str(value) for name, value in variables.items()}},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


def _hatchling(source: Path, target: Path, *options: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", target, *options],
        cwd=source,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )


def _only(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path
