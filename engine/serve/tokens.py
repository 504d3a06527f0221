"""Tokens of drivers: who may do what with which tables. A file in JSON, in which hashes stand for the tokens.

    {"tokens": [{"id": "3f9a01c2", "hash": "<SHA-256 in hex>", "role": "write", "tables": ["s3://lake/sales/*"],
                 "expires": "2027-01-01T00:00:00+00:00"}]}

A token is ``tmk_<id>_<32 random bytes in base64url>``: with so much chance one round of SHA-256 is as good as any hash.
"""

import base64
import fcntl
import fnmatch
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path

from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, NotAuthenticated
from tallymark.engine.rpc.reread import Reread
from tallymark.engine.serve.private_file import write_unfinished
from tallymark.engine.serve.roots import place_of

_TOKEN = re.compile(r"tmk_(?P<id>[0-9a-f]{8})_[A-Za-z0-9_-]{43}")

_events = EventLog(__name__)


class Role(IntEnum):
    """What a token allows; each includes those before it."""

    READ = 1
    WRITE = 2
    OPERATE = 3
    ADMIN = 4

    @classmethod
    def named(cls, name: str) -> "Role":
        """Return the role with this name. Raises InvalidRequest."""
        try:
            return cls[name.upper()]
        except KeyError:
            raise InvalidRequest(f"role {name!r} is none of {', '.join(role.name.lower() for role in cls)}") from None


class NotAllowed(NotAuthenticated):
    """The token is known, and does not allow that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An entry of the file."""

    id: str
    hash: str
    role: str
    tables: tuple[str, ...]
    """Patterns of places, in which ``*`` is any text, slashes too."""
    expires: str | None = None
    """In ISO 8601; None: never."""

    def __post_init__(self) -> None:
        Role.named(self.role)
        if not self.tables:
            raise InvalidRequest(f"token {self.id} names no tables: give patterns such as 's3://lake/sales/*'")
        for pattern in self.tables:
            place_of(pattern)
        if self.expires is not None:
            _moment(self.expires)

    def is_expired(self, now: datetime) -> bool:
        return self.expires is not None and _moment(self.expires) <= now

    def check(self, role: Role, place: str) -> None:
        """Raise NotAllowed unless it allows this role for the table at the place."""
        if Role.named(self.role) < role or not self.covers(place):
            raise NotAllowed(f"token {self.id} does not allow to {role.name.lower()} {place}")

    def covers(self, place: str) -> bool:
        return any(fnmatch.fnmatchcase(place, place_of(pattern)) for pattern in self.tables)


class TokenFile:
    """The tokens of a service. A file that has changed is read again."""

    def __init__(self, path: Path) -> None:
        """Raises InvalidRequest for a file that is missing, that others may write, or that cannot be read."""
        self._path = path
        try:
            self._tokens = Reread([path], lambda: {token.id: token for token in read_tokens(path)})
        except OSError as error:
            raise InvalidRequest(f"the tokens {path} cannot be read: {error}") from error

    def authenticate(self, presented: str, *, now: datetime | None = None) -> Token:
        """Return the token that was presented. Raises NotAuthenticated: it is missing, unknown or expired."""
        self._refresh()
        match = _TOKEN.fullmatch(presented)
        token = self._tokens.value.get(match["id"]) if match else None
        is_same = hmac.compare_digest(_hash(presented), token.hash if token is not None else _hash(""))
        if token is None or not is_same or token.is_expired(now or datetime.now(UTC)):
            raise NotAuthenticated("the token is missing, unknown or expired; ask the operator of the service for one")
        return token

    def find(self, id_: str) -> Token | None:
        """Return the token with an id, expired or not."""
        self._refresh()
        return self._tokens.value.get(id_)

    def _refresh(self) -> None:
        try:
            if self._tokens.refresh():
                _events.info("tokens.read", path=self._path, tokens=len(self._tokens.value))
        except (OSError, InvalidRequest) as error:  # those that were read before count
            _events.warning("tokens.unreadable", path=self._path, reason=error)


def read_tokens(path: Path) -> list[Token]:
    """Return the tokens of a file. Raises InvalidRequest, naming what is wrong with it."""
    try:
        if path.stat().st_mode & 0o022:
            raise InvalidRequest(f"{path}: others may write these tokens; chmod go-w it")
        found = json.loads(path.read_bytes())["tokens"]
        return [Token(**{**entry, "tables": tuple(entry["tables"])}) for entry in found]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(
            f"{path} is not a file of tokens: {error!r}; make one with 'tallymark serve token add'"
        ) from error


def add_token(
    path: Path, role: str, tables: Sequence[str], *, valid_days: float | None = None, now: datetime | None = None
) -> str:
    """Add a token to the file, which is created if it does not exist. Return the token, which no file has."""
    name = secrets.token_hex(4)
    text = f"tmk_{name}_{base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b'=').decode()}"
    until = None if valid_days is None else ((now or datetime.now(UTC)) + timedelta(days=valid_days)).isoformat()
    token = Token(id=name, hash=_hash(text), role=role, tables=tuple(tables), expires=until)
    with _changing(path) as tokens:
        tokens.append(token)
    return text


def revoke_token(path: Path, name: str) -> None:
    """Remove a token from the file. Raises InvalidRequest for an id that it does not have."""
    with _changing(path) as tokens:
        left = [token for token in tokens if token.id != name]
        if len(left) == len(tokens):
            raise InvalidRequest(f"{path} has no token {name!r}; 'tallymark serve token list' shows those that it has")
        tokens[:] = left


@contextmanager
def _changing(path: Path) -> Iterator[list[Token]]:
    """Yield the tokens of the file, and write them when the block ends. Changes at the same time wait for each other.

    Raises InvalidRequest.
    """
    path = path.resolve()  # a link stays one
    try:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            tokens = read_tokens(path) if path.exists() else []
            yield tokens
            text = json.dumps({"tokens": [asdict(token) for token in tokens]}, indent=1) + "\n"
            write_unfinished(path, text.encode(), like=path.stat() if path.exists() else None).replace(path)
        finally:
            os.close(folder)
    except OSError as error:
        raise InvalidRequest(f"the tokens {path} cannot be written: {error}") from error


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(f"{text!r} is not a time such as 2027-01-01T00:00:00+00:00") from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
