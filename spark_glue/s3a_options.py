"""Storage options from the session's ``fs.s3a.*`` settings: endpoint and credential source.

Keys in ``fs.s3a.access.key`` and similar settings are never read: options travel to tasks, and plans and logs are kept.
Their presence is noticed, and reported where there are no other credentials.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import InvalidRequest


class Settings(Protocol):
    """Hadoop's settings."""

    def get(self, name: str) -> str | None: ...
    def is_set(self, name: str) -> bool:
        """Return whether a setting exists, without reading its value into this process, whose debug log would
        show it.
        """
        ...


SECRETS = (
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    "fs.s3a.security.credential.provider.path",
    "hadoop.security.credential.provider.path",
)
"""Settings that contain keys, or name a store of them."""

CREDENTIAL_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Environment variables that locate credentials, in the order of the vendor's chain."""

_PROVIDERS = "fs.s3a.aws.credentials.provider"

_OF_ROLES = (
    "WebIdentityTokenCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "ContainerCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper",
    "IAMInstanceCredentialsProvider",
    "InstanceProfileCredentialsProvider",
)
_OF_THE_CHAIN = ("EnvironmentVariableCredentialsProvider", *_OF_ROLES)
"""Providers, without their packages, that the vendor's chain includes anyway: environment, web identity, role."""

_OF_PROFILES = ("ProfileCredentialsProvider", "ProfileAWSCredentialsProvider")
_OF_ALL = ("DefaultCredentialsProvider", "DefaultAWSCredentialsProviderChain")
"""The chain with its profiles."""

_OF_KEYS = ("SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider")
"""Providers of keys from the settings."""

_REMEDY = (
    "put credentials into the environment of the driver and the executors (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), "
    "give the machines a role, or pass options=StorageOptions(profile=...) or "
    "StorageOptions(credentials='package.module:function')"
)

_OF_AMAZON = re.compile(
    r"(?:https?://)?s3(?:[.-](?:dualstack\.)?([a-z]{2}(?:-[a-z]+)+-\d))?\.amazonaws\.com(?:\.cn)?/?"
)


def s3a_options(bucket: str, settings: Settings, environment: Mapping[str, str]) -> StorageOptions:
    """Return the options for a bucket; ``fs.s3a.bucket.NAME.*`` precedes ``fs.s3a.*``, as in Hadoop.

    ``environment`` is this process's; executors are assumed to have the same.

    Raises:
        InvalidRequest: a provider of credentials without a counterpart here; keys in the settings, and no other
            credentials available; or keys in the environment, which Hadoop would not read.
    """
    ours = _OfBucket(bucket, settings)
    endpoint, region = _endpoint(ours)
    return StorageOptions(
        endpoint=endpoint,
        region=region,
        path_style=_is(ours.get("fs.s3a.path.style.access"), default=False) if endpoint else None,
        profile=_profile(ours, environment),
    )


class _OfBucket:
    """The settings that apply to one bucket."""

    def __init__(self, bucket: str, settings: Settings) -> None:
        self._beginning = f"fs.s3a.bucket.{bucket}."
        self._settings = settings

    def get(self, name: str) -> str | None:
        value = self._settings.get(self._own(name))
        return (value if value is not None else self._settings.get(name) or "").strip() or None

    def is_set(self, name: str) -> bool:
        return self._settings.is_set(self._own(name)) or self._settings.is_set(name)

    def _own(self, name: str) -> str:
        return name.replace("fs.s3a.", self._beginning, 1)


def _endpoint(settings: Settings) -> tuple[str | None, str | None]:
    """Return endpoint and region. A region that is not set may be in the name of one of Amazon's own endpoints."""
    endpoint, region = settings.get("fs.s3a.endpoint"), settings.get("fs.s3a.endpoint.region")
    region = None if region in ("sdk", "external", "ec2") else region
    own = _OF_AMAZON.fullmatch(endpoint or "")
    if endpoint is None or (own and own[1] is None):
        return None, region
    region = region or (own[1] if own else None)
    if "://" not in endpoint:
        secure = _is(settings.get("fs.s3a.connection.ssl.enabled"), default=True)
        endpoint = f"{'https' if secure else 'http'}://{endpoint}"
    return endpoint, region


def _profile(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """Return the profile of the credentials; None for those of the vendor's chain."""
    names = _providers(settings)
    others = [name for name in names if name not in _OF_KEYS]
    _refuse_environment(others, environment)
    first = next(iter(others), None)
    if first not in _OF_PROFILES and any(environment.get(variable) for variable in CREDENTIAL_VARIABLES):
        return None
    is_profile = any(name in _OF_PROFILES for name in names)
    if is_profile or (any(name in _OF_ALL for name in names) and environment.get("AWS_PROFILE")):
        return settings.get("fs.s3a.auth.profile.name") or environment.get("AWS_PROFILE") or "default"
    _refuse_keys(settings, names)
    return None


def _providers(settings: Settings) -> Sequence[str]:
    """Return the classes that Hadoop would use, in its order, without packages.

    Raises InvalidRequest if one is unknown.
    """
    providers = [name for name in re.split(r"[,\s]+", settings.get(_PROVIDERS) or "") if name]
    for provider in providers:
        if _name(provider) not in (*_OF_THE_CHAIN, *_OF_PROFILES, *_OF_ALL, *_OF_KEYS):
            raise InvalidRequest(f"{_PROVIDERS} names {provider}, which only Hadoop can ask; {_REMEDY}")
    return [_name(provider) for provider in providers]


def _refuse_environment(names: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raise if the environment has keys and Hadoop would use roles only: the vendor's chain would use the keys."""
    is_of_roles = bool(names) and all(name in _OF_ROLES for name in names)
    if is_of_roles and environment.get("AWS_ACCESS_KEY_ID"):
        raise InvalidRequest(
            f"AWS_ACCESS_KEY_ID is set, which Hadoop would not look at, as {_PROVIDERS} names {', '.join(names)} only; "
            "unset it, or add EnvironmentVariableCredentialsProvider to these, or pass options=StorageOptions(...)"
        )


def _refuse_keys(settings: Settings, names: Sequence[str]) -> None:
    """Raise if Hadoop would read keys from its settings, or has no other source of them."""
    kept = next((name for name in SECRETS if settings.is_set(name)), None)
    if kept is not None and any(name in _OF_KEYS for name in names):
        raise InvalidRequest(
            f"{kept} is set, and not read, since plans and logs are kept; {_REMEDY}; where the machines have a role, "
            "take it out of the settings"
        )
    if names and all(name in _OF_KEYS for name in names):
        raise InvalidRequest(f"{_PROVIDERS} takes keys from settings, which are not read; {_REMEDY}")


def _name(provider: str) -> str:
    return provider.rpartition(".")[2]


def _is(value: str | None, *, default: bool) -> bool:
    return default if value is None else value.lower() == "true"
