"""The architecture page shows the tree as it is: each room of the engine with its own description, and the layers."""

import ast
import re
import tomllib
from pathlib import Path

from tests.docs.markdown import DOCS, names_in, table_after

ROOT = Path(__file__).parents[2]
PAGE = (DOCS / "architecture.md").read_text()


def rooms() -> dict[str, str]:
    """Each folder of the engine with the first paragraph of its docstring."""
    found = {}
    for path in sorted((ROOT / "engine").glob("*/__init__.py")):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        found[f"engine/{path.parent.name}/"] = text.partition("\n\n")[0].replace("\n", " ")
    return found


def layers() -> list[str]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (inside,) = (contract for contract in contracts if contract.get("containers") == ["tallymark.engine"])
    return list(inside["layers"])


def test_the_code_map_has_each_room_of_the_engine_as_it_describes_itself() -> None:
    rows = {names_in(folder)[0]: text for folder, text in table_after("architecture.md", "## Code map")}
    assert {folder: text for folder, text in rows.items() if folder.startswith("engine/")} == rooms()


def test_every_folder_of_the_map_is_there() -> None:
    for folder, _ in table_after("architecture.md", "## Code map"):
        assert all((ROOT / name).is_dir() for name in names_in(folder))


def test_the_drawing_of_the_layers_is_what_the_import_linter_checks() -> None:
    drawn = PAGE.partition("## Code map")[2].partition("| folder")[0]
    assert [line.strip() for line in drawn.splitlines() if line.startswith("    ")] == layers()


def test_the_modules_on_the_paths_exist() -> None:
    paths = PAGE.partition("## Two pictures")[2].partition("## Code map")[0]
    modules = set(re.findall(r"\b([a-z]+/[a-z_]+)\b", paths))
    assert len(modules) > 20
    assert [module for module in sorted(modules) if not (ROOT / "engine" / f"{module}.py").exists()] == []
