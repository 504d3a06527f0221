"""The tree of errors is the one that is drawn."""

import builtins
import inspect
import re

import pytest

from tallymark.engine import errors

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.TallymarkError)]

LINE = re.compile(r"^(?P<lead>[│├└─ ]*)(?P<name>[A-Z]\w+)")
ALSO = re.compile(r"(?P<name>[A-Z]\w+) .*\(also (?P<builtin>\w+)\)")


def drawn() -> dict[str, str]:
    """Each error of the docstring's picture, with the error above it."""
    parents: dict[str, str] = {}
    way: list[str] = []
    picture = inspect.getdoc(errors) or ""
    for match in filter(None, map(LINE.match, picture.partition("\n\n")[2].splitlines())):
        depth = len(match["lead"]) // 4
        del way[depth:]
        if way:
            parents[match["name"]] = way[-1]
        way.append(match["name"])
    return parents


def test_the_drawn_tree_is_the_real_one():
    real = {cls.__name__: cls.__mro__[1].__name__ for cls in CLASSES if cls is not errors.TallymarkError}
    shown = drawn()
    assert shown.pop("BackendError") == "TallymarkError"
    assert shown == real


@pytest.mark.parametrize(("name", "builtin"), [("InvalidRequest", "ValueError"), ("MissingExtra", "ImportError")])
def test_an_error_that_is_drawn_as_a_builtin_too_is_one(name, builtin):
    assert (name, builtin) in ALSO.findall(errors.__doc__ or "")
    assert issubclass(getattr(errors, name), getattr(builtins, builtin))


def test_errors_carry_what_a_caller_decides_by():
    assert errors.Overloaded("full", retry_after_s=0.5).retry_after_s == 0.5
    assert errors.CommitUnknown("silence", instant="20240101000000000").instant == "20240101000000000"
    conflict = errors.ConflictError("lost", partition=None, winner="20240101000000000")
    assert (str(conflict), conflict.partition, conflict.winner) == ("lost", None, "20240101000000000")


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_says_what_it_means(cls):
    assert (cls.__doc__ or "").strip().endswith(".")
