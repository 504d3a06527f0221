import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tallymark


def answer(program: str) -> str:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


WITHOUT_PYSPARK = "import sys; sys.modules['pyspark'] = None\nimport tallymark\n"


OF_PYSPARK = ["delete", "hudi", "plan", "read", "reading", "sync_catalog", "write"]


@pytest.mark.parametrize("name", OF_PYSPARK)
def test_without_pyspark_its_names_raise_an_error_that_names_the_extra(name):
    program = (
        f"{WITHOUT_PYSPARK}"
        f"try: tallymark.{name}\n"
        "except ImportError as error: print(type(error).__name__, isinstance(error, tallymark.TallymarkError), error)"
    )
    printed = answer(program)
    assert printed.startswith("MissingExtra True ")
    assert "pip install 'tallymark[pyspark]'" in printed


def test_without_pyspark_every_other_name_is_there():
    program = f"{WITHOUT_PYSPARK}print(all(getattr(tallymark, n) for n in tallymark.__all__ if n not in {OF_PYSPARK}))"
    assert answer(program) == "True"


def test_dir_lists_every_public_name_before_any_is_used():
    assert answer("import tallymark; print(set(tallymark.__all__) <= set(dir(tallymark)))") == "True"


def test_tab_completion_offers_the_names():
    program = (
        "import rlcompleter, tallymark\n"
        "complete = rlcompleter.Completer({'tallymark': tallymark}).complete\n"
        "print(*[complete('tallymark.open_', state) for state in range(4)])"
    )
    assert (
        answer(program)
        == "tallymark.open_backend( tallymark.open_marker_engine( tallymark.open_table( tallymark.open_view("
    )


@pytest.mark.parametrize("name", sorted(tallymark.__all__))
def test_every_public_name_has_a_home(name):
    assert getattr(tallymark, name).__name__.removeprefix("tallymark.") == name


def test_type_checkers_see_the_names_that_are_there():
    """The package reads the lines of its stub by itself; here it is parsed as Python."""
    statements = ast.walk(ast.parse(Path(tallymark.__file__).with_suffix(".pyi").read_text()))
    seen = {
        name.asname for each in statements if isinstance(each, ast.ImportFrom) for name in each.names if name.asname
    }
    assert seen == set(tallymark.__all__)


def test_unknown_name_is_an_attribute_error_that_says_so():
    with pytest.raises(AttributeError, match="module 'tallymark' has no attribute 'wrote'"):
        tallymark.__getattr__("wrote")
