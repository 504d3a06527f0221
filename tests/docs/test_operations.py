"""The table of REST operations in the guide is that of the code, and so is the OpenAPI document beside it."""

import json
from pathlib import Path

from tallymark.engine.serve.rest.app import ALL_OPERATIONS
from tallymark.engine.serve.rest.openapi import openapi_document
from tests.docs.markdown import names_in, table_after

ROOT = Path(__file__).parents[2]


def test_the_table_of_operations_is_that_of_the_code() -> None:
    rows = table_after("page.md", "## REST")
    assert [(names_in(name)[0], names_in(role)[0], text) for name, role, text in rows] == [
        (f"{each.method} {each.path}", each.role.name.lower(), each.summary) for each in ALL_OPERATIONS if each.role
    ]


def test_the_openapi_document_is_that_of_the_code() -> None:
    served = json.loads(json.dumps(openapi_document(ALL_OPERATIONS)))
    kept = json.loads((ROOT / "docs" / "openapi.json").read_text())
    assert kept == served, f"write it again:\n{json.dumps(served, indent=1)}"
