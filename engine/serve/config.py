"""What ``tallymark serve`` serves, and its file in TOML.

[[roots]]
url = "s3://lake/sales"
storage = {region = "eu-west-1"}             # StorageOptions

[jobs]                                       # JobServiceSettings, and the file of the secret
host = "10.1.2.3"
secret = "/etc/tallymark/secret"

[service]                                    # ServeSettings: memory, logs
memory_mb = 1024

[[hudi]]                                     # HudiServiceSettings, and which of the roots; one listener each
networks = ["10.1.0.0/16"]
roots = ["s3://lake/sales"]

[page]                                       # PageSettings: REST and pages
port = 26757

[markers]                                    # MarkerSettings
[views]                                      # ViewSettings
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tallymark.backends.errors import TallymarkError
from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.roots import Root, Roots, place_of
from tallymark.engine.serve.settings import (
    HudiServiceSettings,
    JobServiceSettings,
    PageSettings,
    ServeSettings,
    check_page_address,
)
from tallymark.engine.settings import MarkerSettings, ViewSettings

T = TypeVar("T")

SECTIONS = ("roots", "service", "jobs", "hudi", "page", "markers", "views")


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiListener:
    """One listener for Hudi's writers."""

    settings: HudiServiceSettings
    roots: Roots


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """Everything that ``tallymark serve`` takes."""

    roots: Roots
    service: ServeSettings = field(default_factory=ServeSettings)
    jobs: JobServiceSettings = field(default_factory=JobServiceSettings)
    secret: Path | None = None
    """None: the file in the user's folder for state."""
    hudi: tuple[HudiListener, ...] = ()
    page: PageSettings = field(default_factory=PageSettings)
    markers: MarkerSettings = field(default_factory=MarkerSettings)
    views: ViewSettings = field(default_factory=ViewSettings)
    page_views: ViewSettings = field(default_factory=ViewSettings)


class ConfigErrors(InvalidRequest):
    """What is wrong with a file, a line each."""

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        super().__init__("; ".join(f"{path}: {problem}" for problem in problems))
        self.problems = tuple(problems)


def load_config(
    path: Path | None,
    *,
    roots: Sequence[Root] = (),
    service: Mapping[str, object] | None = None,
    jobs: Mapping[str, object] | None = None,
    hudi: Mapping[str, object] | None = None,
    page: Mapping[str, object] | None = None,
) -> ServeConfig:
    """Return the configuration of a file, with what the command line adds: further roots, and settings that count
    before those of the file. Without ``hudi`` in the file, one listener for Hudi's writers of all roots;
    with ``hudi = []``, none.

    Raises ConfigErrors with everything that is wrong with it.
    """
    where = path or Path("command line")
    given = _Given(dict(service or {}), dict(jobs or {}), dict(hudi or {}), dict(page or {}))
    return _Reader(where).read(_parsed(path), list(roots), given)


@dataclass(frozen=True, slots=True)
class _Given:
    """Settings of the command line, by section."""

    service: dict[str, object]
    jobs: dict[str, object]
    hudi: dict[str, object]
    page: dict[str, object]


def _parsed(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigErrors(path, [f"cannot be read: {error}"]) from error


def _spilling(process: ServeSettings | PageSettings | None) -> dict[str, object]:
    """Return what differs in views of a service from those of a job: each has a quarter of the memory at most, and the
    rest on a disk.
    """
    return {"store": "spillable", "memory_bytes": (process or ServeSettings()).memory_mb << 18}


class _Reader:
    """Reads one file, and collects what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._problems: list[str] = []

    def read(self, found: dict[str, Any], roots: list[Root], given: _Given) -> ServeConfig:
        self._check_names("", found, SECTIONS)
        jobs = self._table(found, "jobs") | given.jobs
        secret = jobs.pop("secret", None)
        if not isinstance(secret, str | None):
            self._problems.append(f"[jobs] secret={secret!r} is not the path of a file")
        own = [root for entry in self._tables(found, "roots") if (root := self._root(entry)) is not None]
        roots = self._merged(own, roots)
        settings = self._made("jobs", JobServiceSettings, jobs)
        process = self._made("service", ServeSettings, self._table(found, "service") | given.service)
        page = self._page(found, given, settings)
        markers = self._made("markers", MarkerSettings, self._table(found, "markers"))
        views = self._made("views", ViewSettings, _spilling(process) | self._table(found, "views"))
        page_views = views and self._made("views", ViewSettings, _spilling(page) | self._table(found, "views"))
        served = self._attempt("roots", lambda: Roots(roots))
        listeners = self._tables(found, "hudi") if "hudi" in found else [{}]
        hudis = [self._hudi(roots, entry | given.hudi) for entry in listeners] if served is not None else []
        if given.hudi and not listeners:
            self._problems.append("hudi = [] means no listener for Hudi, and an option of the command line is for one")
        if settings is not None:
            ports = [settings.port, settings.task_port, *(each.settings.port for each in hudis if each is not None)]
            ports += [page.port] if page is not None and page.enabled else []
            twice = sorted({port for port in ports if port and ports.count(port) > 1})
            self._problems += [f"port {port} is of two listeners" for port in twice]
        if self._problems or served is None or process is None or settings is None or page is None:
            raise ConfigErrors(self._path, self._problems)
        assert markers is not None, "it is there without problems, as are the others"
        assert views is not None
        assert page_views is not None
        return ServeConfig(
            roots=served,
            service=process,
            jobs=settings,
            secret=None if secret is None else Path(str(secret)),
            hudi=tuple(each for each in hudis if each is not None),
            page=page,
            markers=markers,
            views=views,
            page_views=page_views,
        )

    def _page(self, found: dict[str, Any], given: _Given, jobs: JobServiceSettings | None) -> PageSettings | None:
        values = self._table(found, "page") | given.page
        if isinstance(values.get("hosts"), list):
            values["hosts"] = tuple(values["hosts"])
        page = self._made("page", PageSettings, values)
        if page is not None and page.enabled and jobs is not None:
            self._attempt("page", lambda: check_page_address(page, jobs))
        return page

    def _merged(self, own: Sequence[Root], given: Sequence[Root]) -> list[Root]:
        """Return the roots of the file with those of the command line, whose options count where there are any."""
        places: dict[str, Root] = {}
        for root in (*own, *given):
            try:
                place = place_of(root.url)
            except InvalidRequest:
                place = root.url  # ``Roots`` reports it
            is_plain = root.options in (None, StorageOptions())
            places[place] = places[place] if is_plain and place in places else root
        return list(places.values())

    def _root(self, entry: dict[str, Any]) -> Root | None:
        self._check_names("roots", entry, ("url", "storage"))
        storage = dict(self._table(entry, "storage"))
        hadoop = storage.pop("hadoop", {})
        if isinstance(hadoop, dict) and hadoop:
            storage["hadoop"] = tuple(sorted(hadoop.items()))
        options = self._made("roots.storage", StorageOptions, storage)
        if not isinstance(url := entry.get("url"), str):
            self._problems.append("[[roots]] has no url")
            return None
        return Root(url, options)

    def _hudi(self, roots: Sequence[Root], entry: dict[str, Any]) -> HudiListener | None:
        named = entry.pop("roots", None)
        if named is not None and not (isinstance(named, list) and all(isinstance(url, str) for url in named)):
            self._problems.append("[[hudi]] roots is not a list of texts")
            named = None
        if isinstance(entry.get("networks"), list):
            entry["networks"] = tuple(entry["networks"])
        settings = self._made("hudi", HudiServiceSettings, entry)
        places = {place: url for url in named or () if (place := self._attempt("hudi", partial(place_of, url)))}
        chosen = [root for root in roots if named is None or place_of(root.url) in places]
        for place in sorted({*places} - {place_of(root.url) for root in roots}):
            self._problems.append(f"[[hudi]] roots: {places[place]!r} is none of the roots")
        own = self._attempt("hudi", lambda: Roots(chosen))
        return None if settings is None or own is None else HudiListener(settings=settings, roots=own)

    def _made(self, section: str, kind: Callable[..., T], values: Mapping[str, object]) -> T | None:
        known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
        extra = ("secret",) if section == "jobs" else ("roots",) if section == "hudi" else ()
        if not self._check_names(section, values, (*known, *extra)):
            return None
        return self._attempt(section, lambda: kind(**values))

    def _attempt(self, section: str, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except (TallymarkError, TypeError, ValueError) as error:
            self._problems.append(f"[{section}] {error}")
            return None

    def _check_names(self, section: str, found: Mapping[str, object], known: Sequence[str]) -> bool:
        unknown = [name for name in found if name not in known]
        for name in unknown:
            near = get_close_matches(name, known, 1)
            hint = f"; {near[0]} is meant, perhaps" if near else f"; known are {', '.join(known)}"
            self._problems.append(f"{f'[{section}] ' if section else ''}{name} is not known{hint}")
        return not unknown

    def _table(self, found: Mapping[str, Any], name: str) -> dict[str, Any]:
        value = found.get(name, {})
        if isinstance(value, dict):
            return dict(value)
        self._problems.append(f"{name} is not a table")
        return {}

    def _tables(self, found: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        value = found.get(name, [])
        if isinstance(value, list) and all(isinstance(each, dict) for each in value):
            return [dict(each) for each in value]
        self._problems.append(f"{name} is not an array of tables: write [[{name}]]")
        return []
