"""``--storage KEY=VALUE``: settings of a store that its URL does not contain, as typed on the command line."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import click

from tallymark.backends.errors import InvalidPath
from tallymark.backends.options import StorageOptions

HADOOP = "hadoop."
"""Prefix of Hadoop's own keys: ``hadoop.dfs.nameservices=ha``."""


def known() -> list[str]:
    """Return all keys that may precede ``=``."""
    return [field.name for field in fields(StorageOptions) if field.name != "hadoop"] + [f"{HADOOP}KEY"]


def storage_option(place: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option of a command, whose argument is ``options``; ``place`` says what has the URL."""
    return click.option(
        "--storage",
        "options",
        multiple=True,
        metavar="KEY=VALUE",
        callback=parse,
        help=f"What {place} not say of the store; repeatable. KEY is one of {', '.join(known())}.",
    )


def parse(_context: click.Context, parameter: click.Parameter, pairs: Iterable[str]) -> StorageOptions:
    """Return the options of the pairs. Values are not repeated in errors, since one may be a key.

    Raises:
        BadParameter: with the key, the rule that it breaks and the remedy.
    """
    given: dict[str, Any] = {}
    hadoop: dict[str, str] = {}
    try:
        for pair in pairs:
            key, value = _split(pair)
            if key.startswith(HADOOP):
                hadoop[key.removeprefix(HADOOP)] = value
            else:
                given[key] = _value(key, value)
        return StorageOptions(**given, hadoop=tuple(sorted(hadoop.items())))
    except InvalidPath as error:
        raise click.BadParameter(str(error), param=parameter) from None


def _split(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals or not key or not value:
        raise InvalidPath("say KEY=VALUE, such as endpoint=https://minio.example:9000")
    return key, value


def _value(key: str, text: str) -> object:
    kind = next((str(field.type) for field in fields(StorageOptions) if field.name == key), None)
    if kind is None or key == "hadoop":
        raise InvalidPath(
            f"{key} is not known; known are {', '.join(known())}. Credentials are not taken here: they come from the "
            "environment, a profile or a role"
        )
    if "bool" in kind:
        return _one_of(key, text, {"true": True, "false": False})
    if "int" in kind or "float" in kind:
        return _number(key, text, whole="int" in kind)
    return text


def _one_of(key: str, text: str, values: dict[str, bool]) -> bool:
    try:
        return values[text.lower()]
    except KeyError:
        raise InvalidPath(f"{key} is {' or '.join(values)}") from None


def _number(key: str, text: str, *, whole: bool) -> float:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        raise InvalidPath(f"{key} is a {'whole ' if whole else ''}number") from None
