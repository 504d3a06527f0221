"""The API reference of the documentation site names every public name, and no other."""

import re

import tallymark
from tests.docs.markdown import DOCS


def test_the_reference_has_every_public_name():
    shown = re.findall(r"^::: tallymark\.(\w+)(?:\.markers)?$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert sorted(shown) == list(tallymark.__all__)
