"""Translation of obstore's errors, parsed from their texts, since they carry no status.

Owns: the one table from status, code and phrase to an error of this library, and keeping secrets out of messages: a
store's error body may repeat a token (S3's ``ExpiredToken``, ``SignatureDoesNotMatch``), so that of the vendor's text
only the status, the code and the store's own message are reported, and the vendor's error is not chained.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tallymark.backends.errors import (
    AlreadyExists,
    BackendError,
    InvalidPath,
    NotFound,
    NotPermitted,
    Throttled,
    Unavailable,
)

Verb = Literal["get", "head", "put", "put_new", "list", "delete"]

_STATUS = re.compile(r"status code: (\d{3})(?: ([^:\n]*))?")
_CODE = re.compile(r"<Code>([\w.]{1,80})</Code>|\(code: ([\w.]{1,80})\)")
_SENTENCE = re.compile(r"<Message>([^<]{1,300})|failed for key [^\n]*?: ([^\n]{1,300}) \(code: ")
_KEY = re.compile(
    r"failed for key (.+?): [^\n]* \(code: |invalid path: [^\n]*?Path \"(.+?)\"(?:: | contained)", re.DOTALL
)
_PROVIDER = re.compile(r"credential provider: (?:(CredentialsRefused|CredentialsUnavailable): ([^\n]*))?")
_CREDENTIAL_KEYS = re.compile(
    r"Error performing \w+ (REDACTED|http://169\.254\.|http://\[fd00:ec2:"
    r"|https?://[^/\s]+/(?:latest/(?:api/token|meta-data/iam/)|computeMetadata/v1/))"
)
"""Failed request for credentials, not for the store: to a token service (whose URL contains a token: the vendor hides
it), a container's agent, or the machine's metadata service."""

_ADDRESS = re.compile(r"https?://\S+")
"""It contains the key, whose text is the caller's and not the store's."""

_NOT_THE_RANGE = re.compile(r"non-partial response|content.range header|wanted range starting", re.IGNORECASE)
"""The vendor's text for an answer of success that has no ``Content-Range``, or that of an empty object."""

NO_ANSWER = "no answer; it may have happened, or may yet"
NO_OBJECT_STORE = "the server there is not an object store: check the URL and StorageOptions.endpoint"


class Meaning(NamedTuple):
    """The error to raise, and what the caller can do; ``{right}`` is the right that the verb needs."""

    error: type[BackendError]
    remedy: str


_GRANT = Meaning(NotPermitted, "grant {right} to these credentials")
_KEYS = Meaning(NotPermitted, "check which credentials are used here: the store does not accept these")
_REGION = Meaning(NotPermitted, "the bucket is elsewhere: set StorageOptions.region, and check endpoint")
_NO_STORE = Meaning(NotPermitted, "check the URL and StorageOptions.endpoint: no bucket answers there")
_UNANSWERED = Meaning(Unavailable, NO_ANSWER)
_BROKEN_BODY = Meaning(Unavailable, "the bytes did not arrive as they were sent")
_FULL = Meaning(NotPermitted, "free space there, or raise the quota")
_SLOWER = Meaning(Throttled, "the store throttles requests")

CODES: Mapping[str, Meaning] = {
    "NoSuchKey": Meaning(NotFound, "nothing is stored there"),
    "NoSuchBucket": Meaning(NotPermitted, "check the bucket's name and region, or create it"),
    "InvalidBucketName": Meaning(NotPermitted, "check the bucket's name"),
    "AccessDenied": _GRANT,
    "AllAccessDisabled": _GRANT,
    "ExpiredToken": Meaning(NotPermitted, "the credentials have expired: renew them, or name a provider that does"),
    "TokenRefreshRequired": Meaning(
        NotPermitted, "the credentials have expired: renew them, or name a provider that does"
    ),
    "InvalidToken": _KEYS,
    "InvalidAccessKeyId": _KEYS,
    "SignatureDoesNotMatch": _KEYS,
    "InvalidSecurity": _KEYS,
    "AuthenticationRequired": _KEYS,
    "RequestTimeTooSkewed": Meaning(NotPermitted, "set this machine's clock"),
    "AuthorizationHeaderMalformed": _REGION,
    "PermanentRedirect": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "KeyTooLongError": Meaning(InvalidPath, "give a shorter path"),
    "EntityTooLarge": Meaning(NotPermitted, "one put takes less than this; lower TaskSettings.max_file_bytes"),
    "QuotaExceeded": _FULL,
    "InsufficientStorage": _FULL,
    "XMinioStorageFull": _FULL,
    "NotImplemented": Meaning(
        NotPermitted, "this store lacks what Tallymark needs; run 'tallymark doctor' to see what it supports"
    ),
    "RequestTimeout": _UNANSWERED,
    "IncompleteBody": _BROKEN_BODY,
    "BadDigest": _BROKEN_BODY,
    "XAmzContentSHA256Mismatch": _BROKEN_BODY,
    "InternalError": _UNANSWERED,
    "OperationAborted": Meaning(Unavailable, "another request for the same object was on its way"),
    "ConditionalRequestConflict": Meaning(Unavailable, "another request for the same object was on its way"),
    "SlowDown": _SLOWER,
    "ServiceUnavailable": _SLOWER,
    "TooManyRequests": _SLOWER,
    "RequestLimitExceeded": _SLOWER,
    "Throttling": _SLOWER,
}
"""Meanings by the code in the store's answer, which is more specific than the status."""

STATUSES: Mapping[int, Meaning] = {
    400: Meaning(NotPermitted, "credentials that have expired, or another region than the bucket's, are answered so"),
    401: _KEYS,
    403: _GRANT,
    404: _NO_STORE,
    405: _NO_STORE,
    408: _UNANSWERED,
    409: Meaning(Unavailable, "another request for the same object was on its way"),
    412: Meaning(AlreadyExists, "it was not touched"),
    413: CODES["EntityTooLarge"],
    425: _SLOWER,
    429: _SLOWER,
    501: CODES["NotImplemented"],
    503: _SLOWER,
    507: _FULL,
}
"""Meanings by status, where no code is known: answers to HEAD have none."""

PHRASES: tuple[tuple[str, Meaning], ...] = (
    ("redirect without LOCATION", _REGION),
    ("Temporary failure in name resolution", _UNANSWERED),
    ("dns error", Meaning(NotPermitted, "no host has this name: check the URL, endpoint and region")),
    ("BadScheme", Meaning(NotPermitted, "the endpoint is not https; set StorageOptions.endpoint accordingly")),
    ("InvalidContentType", Meaning(NotPermitted, "the server does not speak TLS: use 'http://' in endpoint")),
    ("InvalidCertificate", Meaning(NotPermitted, "its certificate is not trusted here: name its issuer in ca_file")),
    ("invalid peer certificate", Meaning(NotPermitted, "its certificate is not trusted: name its issuer in ca_file")),
    ("ConnectionRefused", Meaning(Unavailable, "nothing listens there, or not at this moment")),
    ("kind: Connect", Meaning(Unavailable, "it cannot be reached from here, or not at this moment")),
    ("kind: Timeout", Meaning(Unavailable, "no answer in time; it may have happened, or may yet")),
    (
        "invalid path",
        Meaning(
            InvalidPath, "a foreign object's key has empty or dot segments or control characters: rename or remove it"
        ),
    ),
    (
        "header missing",
        Meaning(Unavailable, NO_OBJECT_STORE),
    ),
)
"""Meanings by the vendor's text where there is no status; the first match counts. Otherwise the outcome is unknown."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A parsed error of the vendor."""

    meaning: Meaning
    message: str
    """The part that may be reported."""
    key: str | None = None
    """The key concerned, of a request for several."""


def read_refusal(error: BaseException, verb: Verb) -> Refusal:
    """Translate the vendor's error. Only its parts without secrets are reported."""
    text = str(error)
    if (provider := _provider_failure(text)) is not None:
        return provider
    code, status = _first(_CODE, text), _first(_STATUS, text)
    if (keys_request := _CREDENTIAL_KEYS.search(text)) is not None:
        return _without_keys(status, is_service=keys_request[1] == "REDACTED")
    message = " ".join(part for part in (status, code, _sentence(text)) if part)
    meaning = _by_answer(code, int(status) if status else None, verb) or _by_phrase(text)
    return Refusal(meaning, message, _first(_KEY, text))


def translated(error: BaseException, verb: Verb, where: str, rights: Mapping[Verb, str]) -> BackendError:
    """Return the error to raise instead: it names ``where``, the answer and the remedy."""
    refusal = read_refusal(error, verb)
    at = f"{where} (key {refusal.key!r})" if refusal.key is not None else where
    message = f": {refusal.message}" if refusal.message else ""
    remedy = refusal.meaning.remedy.format(right=rights.get(verb, "the right to do so"))
    if refusal.meaning.error is NotFound:
        return NotFound(f"{at} does not exist")
    if refusal.meaning.error is AlreadyExists:
        return AlreadyExists(f"{at} exists; {remedy}")
    return refusal.meaning.error(f"{at}: {_DOING[verb]}{message}; {remedy}")


def is_beyond_end(error: BaseException) -> bool:
    """Return whether the store has answered that the object ends before the range that was requested."""
    return not isinstance(error, FileNotFoundError) and _first(_STATUS, str(error)) == "416"


def is_not_the_range(error: BaseException) -> bool:
    """Return whether the store has answered a request for a range with success, and without that range."""
    return _NOT_THE_RANGE.search(str(error)) is not None


_DOING: Mapping[Verb, str] = {
    "get": "could not be read",
    "head": "could not be read",
    "put": "could not be written",
    "put_new": "could not be written",
    "list": "could not be listed",
    "delete": "could not be deleted",
}


def _by_answer(code: str | None, status: int | None, verb: Verb) -> Meaning | None:
    if code is not None and code in CODES and not (code == "NoSuchKey" and verb in ("put", "put_new", "list")):
        return CODES[code]
    if status is None:
        return None if code is None else _GRANT if "Denied" in code else _UNANSWERED
    if status == 404 and verb == "head":  # no body says what is missing: what follows on it will meet the bucket
        return CODES["NoSuchKey"]
    if status in STATUSES and not (status == 412 and verb != "put_new"):
        return STATUSES[status]
    return Meaning(NotPermitted, "check the store's answer") if 300 <= status < 500 else _UNANSWERED


def _by_phrase(text: str) -> Meaning:
    message = _ADDRESS.sub("", text).lower()
    found = (meaning for phrase, meaning in PHRASES if phrase.lower() in message)
    return next(found, _UNANSWERED)


def _provider_failure(text: str) -> Refusal | None:
    """Return the error of ``credentials.CredentialProvider``, which the vendor's library has wrapped."""
    found = _PROVIDER.search(text)
    if found is None:
        return None
    error = Unavailable if found[1] == "CredentialsUnavailable" else NotPermitted
    message = found[2] or "it gave what the store's library does not take"
    return Refusal(Meaning(error, "no request was sent; check the provider of credentials"), message)


def _without_keys(status: str | None, *, is_service: bool) -> Refusal:
    """Return the refusal for missing credentials. A machine without a role has no metadata service either."""
    is_passing = is_service if status is None else int(status) >= 500 or status == "429"
    remedy = (
        "no credentials: the environment has none, and the token service, container or machine gave none; set "
        "them, or name a provider in StorageOptions.credentials"
    )
    return Refusal(Meaning(Unavailable if is_passing else NotPermitted, remedy), status or "")


def _sentence(text: str) -> str:
    """Return the store's own message, without markup."""
    found = _first(_SENTENCE, text)
    return "(" + " ".join(found.split()) + ")" if found else ""


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return next(group for group in found.groups() if group) if found else None
