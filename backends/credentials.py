"""Credentials from a provider that is named in the options, and runs wherever storage is opened.

Owns: finding the provider when it is first needed, and reporting its failures without their text. Does not own: when
it is called again; the vendor's library does that when the credentials expire.
"""

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Any

from tallymark.backends.errors import Unavailable

Provide = Callable[[], Mapping[str, Any]]


class CredentialsRefused(Exception):
    """The provider failed, and will again. Crosses the vendor's library as text: ``object_errors`` reads it."""


class CredentialsUnavailable(Exception):
    """The provider had no answer for the moment."""


class CredentialProvider:
    """Callable for the vendor's library; its failures name the provider, and do not repeat the provider's text."""

    def __init__(self, name: str, load: Callable[[], Provide], *, needs: Sequence[str], timeout_s: float) -> None:
        """``load`` finds the function that gives credentials, once; ``needs`` are the fields that it must give.

        ``timeout_s`` is how long it may take: the vendor's library, and with it a request, would wait without limit.
        """
        self._name = name
        self._load = load
        self._needs = needs
        self._timeout_s = timeout_s
        self._provide: Provide | None = None

    def __call__(self) -> dict[str, Any]:
        """Return credentials, with ``expires_at``: None, or the time of the next call."""
        answers: SimpleQueue[dict[str, Any] | Exception] = SimpleQueue()
        threading.Thread(target=lambda: answers.put(self._call_provider()), name=repr(self), daemon=True).start()
        try:
            answer = answers.get(timeout=self._timeout_s)
        except Empty:
            raise CredentialsUnavailable(f"{self._name} gave no answer within {self._timeout_s:.1f} s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _call_provider(self) -> dict[str, Any] | Exception:
        """Return what the provider gave, or how it failed, without the text."""
        try:
            if self._provide is None:
                self._provide = self._load()
            given = self._provide()
            lacks = self._lacks(given)
        except Exception as error:  # the text may contain a key: report only the class
            passes = isinstance(error, Unavailable | TimeoutError | ConnectionError)
            kind = CredentialsUnavailable if passes else CredentialsRefused
            return kind(f"{self._name} raised {type(error).__name__}")
        if lacks is not None:
            return CredentialsRefused(f"{self._name} gave {lacks}")
        return {"token": None, "expires_at": None, **given}

    def _lacks(self, given: object) -> str | None:
        """Return what is wrong with what the provider gave."""
        if not isinstance(given, Mapping):
            return "no mapping"
        for field in self._needs:
            if not (isinstance(given.get(field), str) and given[field]):
                return f"no {field}"
        expires = given.get("expires_at")
        if expires is not None and not (isinstance(expires, datetime) and expires.tzinfo is not None):
            return "an expires_at that is not a datetime with a time zone"
        return None

    def __repr__(self) -> str:
        return f"<CredentialProvider {self._name}>"


def named_provider(name: str, *, needs: Sequence[str], timeout_s: float) -> CredentialProvider:
    """Return the provider ``package.module:function``. It is imported at the first call."""
    return CredentialProvider(name, lambda: _find(name), needs=needs, timeout_s=timeout_s)


def _find(name: str) -> Provide:
    module, _, function = name.partition(":")
    found: Provide = getattr(importlib.import_module(module), function)
    return found
