"""The OpenAPI 3.1 document of the operations, made from their table and the types of their documents."""

import ast
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, get_args, is_typeddict

import msgspec

from tallymark.engine.rpc.handshake import RELEASE
from tallymark.engine.serve.rest.calls import Operation
from tallymark.engine.serve.rest.problems import ProblemDocument
from tallymark.engine.serve.tokens import Role

REFUSALS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
"""Statuses of problem documents."""


IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 200 printable characters. A request that is sent again with the same key gets the answer of "
    "the first one.",
    "schema": {"type": "string"},
}


def openapi_document(operations: Sequence[Operation], base_path: str = "") -> dict[str, Any]:
    """Return the document as JSON values."""
    kinds = [*(kind for each in operations for kind in _answers(each)), ProblemDocument]
    kinds += [each.body for each in operations if each.body]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(kinds, schemas, strict=True))
    for kind in _kinds_within(kinds):
        if (schema := components.get(kind.__name__)) is not None:
            _describe(schema, kind)
    paths: dict[str, Any] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(
            each, [schema_of[kind] for kind in _answers(each)]
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tallymark",
            "version": RELEASE,
            "description": "The tables below the roots of `tallymark serve`. Sizes are bytes, ages seconds, instants "
            "17 digits of UTC time, paths relative to `url`. Keys may be added to answers; none is removed.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_path or "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"problem": _content("What was wrong.", _ref("ProblemDocument"), "application/problem+json")},
        },
    }


def _answers(operation: Operation) -> tuple[Any, ...]:
    return get_args(operation.answer) or (operation.answer,)


def _operation(operation: Operation, answers: Sequence[object]) -> dict[str, Any]:
    answer = answers[0] if len(answers) == 1 else {"anyOf": answers}
    responses: dict[str, Any] = {"200": _content("The document.", answer)}
    if operation.method == "GET":
        responses["304"] = {"description": "The client has the current document (If-None-Match)."}
    responses |= {str(status.value): {"$ref": "#/components/responses/problem"} for status in REFUSALS}
    responses["431"] = {"description": "The head of the request is larger than 16 KiB."}
    name = re.sub(r"\W+", "_", operation.path.removeprefix("/v1/").replace("{", "").replace("}", "")).strip("_")
    found: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}_{name}",
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation.path), *_query_parameters(operation.query)],
        "responses": responses,
    }
    if operation.body is not None:
        found["requestBody"] = {"required": True, **_content("", _ref(operation.body.__name__), described=False)}
    if operation.role is not None and operation.role > Role.READ:
        found["parameters"].append(IDEMPOTENCY_KEY)
    if operation.role is not None:
        found["x-role"] = operation.role.name.lower()
    return found


def _path_parameters(path: str) -> Iterable[dict[str, Any]]:
    descriptions = {"table": "`id` of a table in `/v1/tables`.", "instant": "Instant of an open job."}
    patterns = {"table": "^[0-9a-f]{16}$", "instant": r"^[0-9]{17}$"}
    for name in re.findall(r"\{(\w+)\}", path):
        schema = {"type": "string", "pattern": patterns[name]}
        yield {"name": name, "in": "path", "required": True, "description": descriptions[name], "schema": schema}


def _query_parameters(kind: type[msgspec.Struct]) -> Iterable[dict[str, Any]]:
    (_,), components = msgspec.json.schema_components([kind])
    schema = components[kind.__name__]
    texts = _attribute_docs(kind)
    for name, found in schema.get("properties", {}).items():
        found = dict(found)
        text = texts.get(name) or found.pop("description", "")
        required = name in schema.get("required", ())
        yield {"name": name, "in": "query", "required": required, "description": text, "schema": found}


def _content(text: str, schema: object, kind: str = "application/json", *, described: bool = True) -> dict[str, Any]:
    return {**({"description": text} if described else {}), "content": {kind: {"schema": schema}}}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _describe(schema: dict[str, Any], kind: type) -> None:
    """Add the texts that stand below the fields in the source."""
    for name, text in _attribute_docs(kind).items():
        found = schema.get("properties", {}).get(name)
        if found is not None and "$ref" not in found:
            found["description"] = text


@cache
def _attribute_docs(kind: type) -> Mapping[str, str]:
    """Return the docstring below each annotated name of a class, of its bases, too."""
    texts: dict[str, str] = {}
    for base in getattr(kind, "__orig_bases__", ()):
        if is_typeddict(base):
            texts |= _attribute_docs(base)
    try:
        (tree,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body
    except (OSError, TypeError, SyntaxError):
        return texts
    assert isinstance(tree, ast.ClassDef)
    for node, below in zip(tree.body, tree.body[1:], strict=False):
        match node, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = " ".join(text.split())
    return texts


def _kinds_within(kinds: Iterable[Any]) -> set[type]:
    """Return all classes of documents that these contain."""
    found: set[type] = set()
    pending = list(kinds)
    while pending:
        kind = pending.pop()
        pending += getattr(kind, "__args__", ())
        if isinstance(kind, type) and kind not in found and (is_typeddict(kind) or issubclass(kind, msgspec.Struct)):
            found.add(kind)
            pending += inspect.get_annotations(kind, eval_str=True).values()
    return found
