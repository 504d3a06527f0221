"""Tests, files and folders that the documentation names exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests/README.md"]


def cited(pattern: str) -> dict[str, list[str]]:
    """Each match in a page, with the pages that it is in; the changelog names what was."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        if page.name != "CHANGELOG.md":
            for match in re.findall(pattern, page.read_text()):
                found.setdefault(match, []).append(page.name)
    return found


def test_every_cited_test_file_exists() -> None:
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    names = cited(r"\btest_\w+\.py\b")
    assert len(names) > 20
    assert {name: pages for name, pages in names.items() if name not in there} == {}


def test_every_cited_path_exists() -> None:
    paths = cited(r"`((?:tests|engine|backends|spark_glue|bench|demo|deploy|docs|examples)/[\w/.-]*\w)`")
    assert len(paths) > 20
    assert {path: pages for path, pages in paths.items() if not (ROOT / path).exists()} == {}


def test_every_cited_test_exists() -> None:
    there = {
        name
        for folder in ("tests", "backends/testing")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"\bdef (test_\w+)\(", path.read_text())
    }
    names = cited(r"`(test_[a-z0-9_]+)`")
    assert len(names) > 20
    assert {name: pages for name, pages in names.items() if name not in there} == {}
