"""The events that operators are told of are those that the code can emit."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.markdown import names_in, table_after

ROOT = Path(__file__).parents[2]
FOLDERS = ("backends", "engine", "spark_glue", "src/tallymark/cli")
LEVELS = ("debug", "info", "warning", "error", "fault")
"""As of ``EventLog``; a fault is logged at ERROR, as an error is, with a stack."""

OWN = {"backends/events.py"}


def calls() -> Iterator[tuple[str, ast.Call, str]]:
    """Every call of an attribute in the library: where, what, and the attribute's name."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            where = str(path.relative_to(ROOT))
            if where in OWN:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    yield where, node, node.func.attr


def emitted() -> dict[str, tuple[set[str], set[str]]]:
    """Of each event in the source its levels and its keys."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for where, call, level in calls():
        assert isinstance(call.func, ast.Attribute)
        if isinstance(call.func.value, ast.Name) and call.func.value.id == "_events":
            assert level in LEVELS, where
            (name,) = call.args
            assert isinstance(name, ast.Constant), f"{where}:{call.lineno}: the name of an event is written out"
            levels, keys = found.setdefault(str(name.value), (set(), set()))
            levels.add(level)
            keys.update(str(keyword.arg) for keyword in call.keywords)
    return found


def documented() -> dict[str, tuple[set[str], set[str]]]:
    return {
        names_in(name)[0]: (set(levels.split(", ")), set(names_in(keys)))
        for name, levels, keys, _ in table_after("operating.md", "## What the log says")
    }


def test_the_table_of_events_is_what_the_code_can_emit() -> None:
    assert documented() == emitted()


def test_events_are_a_noun_and_a_verb_and_keys_are_words() -> None:
    for name, (_, keys) in emitted().items():
        assert re.fullmatch(r"[a-z]+\.[a-z_]+", name)
        assert all(re.fullmatch(r"[a-z_]+", key) for key in keys)


def test_nothing_is_logged_but_events() -> None:
    assert [where for where, _, name in calls() if name == "getLogger"] == []
