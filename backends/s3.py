"""S3 and compatible stores, through obstore: ``s3://bucket/prefix``, and ``s3a://`` as Hadoop writes it.

Owns: how bucket, endpoint, region and credentials are passed to the vendor's library. Without a profile or a provider,
credentials are those of its own chain: the environment, web identity, a container's role, the machine's role.
"""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallymark.backends.contract import check_path
from tallymark.backends.credentials import CredentialProvider, named_provider
from tallymark.backends.errors import InvalidPath, NotInstalled, NotPermitted
from tallymark.backends.meter import RequestMeter
from tallymark.backends.object_client import ObjectClient, Timeouts
from tallymark.backends.object_errors import Verb
from tallymark.backends.object_store import ObjectStoreBackend
from tallymark.backends.options import StorageOptions
from tallymark.backends.retry import Retries
from tallymark.backends.shown import shown

if TYPE_CHECKING:
    from obstore.store import ObjectStore

RIGHTS: Mapping[Verb, str] = {
    "get": "s3:GetObject, and s3:ListBucket, without which S3 hides that an object is absent,",
    "head": "s3:GetObject, and s3:ListBucket, without which S3 hides that an object is absent,",
    "put": "s3:PutObject",
    "put_new": "s3:PutObject",
    "list": "s3:ListBucket",
    "delete": "s3:DeleteObject",
}

NEEDS = ("access_key_id", "secret_access_key")

_ENDPOINT = re.compile(r"https?://[A-Za-z0-9.\-_\[\]:]+(/[A-Za-z0-9.\-_~/]*)?")

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")

_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


class S3Backend(ObjectStoreBackend):
    """Objects below a prefix of a bucket."""

    def __init__(
        self, bucket: str, prefix: str, options: StorageOptions, retries: Retries, meter: RequestMeter
    ) -> None:
        make = S3Stores(bucket, options).make
        url = f"s3://{bucket}/{prefix}".removesuffix("/")
        client = ObjectClient(url, prefix, make, timeouts=Timeouts.from_options(options), meter=meter, rights=RIGHTS)
        super().__init__(client, retries, options)


def parse_bucket(rest: str, *, scheme: str = "s3") -> tuple[str, str]:
    """Return bucket and prefix of the rest of a URL: ``//bucket/prefix``. The prefix is used as it is written.

    Raises:
        InvalidPath: it names no bucket, or none that can exist, or contains credentials, which are not repeated.
    """
    bucket, _, prefix = rest.removeprefix("//").partition("/")
    if "@" in bucket or ":" in bucket:
        raise InvalidPath(
            "the URL has credentials or a port; keys are not taken from URLs, which are logged and kept: leave them "
            "to the environment, a role or a profile, or name a provider in StorageOptions.credentials; a server's "
            "address goes into StorageOptions.endpoint"
        )
    if not rest.startswith("//") or not bucket:
        raise InvalidPath(f"{shown(rest)} names no bucket; a URL is such as '{scheme}://bucket/flights'")
    if not _BUCKET.fullmatch(bucket):
        raise InvalidPath(
            f"bucket {shown(bucket)}: a name has 2 to 255 letters, digits, '.', '_' and '-', and starts with a letter "
            "or a digit; correct the URL"
        )
    prefix = prefix.rstrip("/")
    return bucket, check_path(prefix) if prefix else ""


class S3Stores:
    """Makes the vendor's stores for one bucket; they differ in their timeouts."""

    def __init__(self, bucket: str, options: StorageOptions) -> None:
        if options.profile is not None and options.credentials is not None:
            raise InvalidPath("options profile and credentials are both given; leave one out")
        if options.profile is not None and find_spec("boto3") is None:
            raise NotInstalled("option profile is read by boto3, which is not here: pip install 'tallymark[aws]'")
        self._bucket = bucket
        self._options = options
        self._endpoint = check_endpoint(options.endpoint or _endpoint_of_environment())
        self._session: Any = None

    def make(self, timeout_s: float) -> "ObjectStore":
        """Return a store whose requests take that long at most, and are sent once."""
        from obstore.exceptions import BaseError
        from obstore.store import S3Store

        try:
            return S3Store(
                config=self._config(),  # type: ignore[arg-type]
                client_options=client_options(self._options, timeout_s, endpoint=self._endpoint),  # type: ignore[arg-type]
                retry_config={"max_retries": 0},
                credential_provider=self._provider(),  # type: ignore[arg-type]
            )
        except (BaseError, ValueError) as error:
            raise NotPermitted(f"s3://{self._bucket}: {str(error).splitlines()[0]}; check the options") from None

    def _config(self) -> dict[str, Any]:
        style = self._options.path_style
        config: dict[str, Any] = {"bucket": self._bucket, "conditional_put": "etag"}
        if self._endpoint is None:
            # A bucket's dots are not covered by the vendor's certificate for names of hosts.
            is_host = not style if style is not None else "." not in self._bucket
        else:
            is_host = style is False
            endpoint = _with_bucket(self._endpoint, self._bucket) if is_host else self._endpoint
            config |= {
                "endpoint": endpoint,
                "aws_endpoint_url_s3": endpoint,
            }  # the second one wins over the environment
        config["virtual_hosted_style_request"] = is_host
        if (region := self._options.region or self._profiles_region()) is not None:
            config["region"] = region
        return config

    def _provider(self) -> CredentialProvider | None:
        if self._options.credentials is not None:
            return named_provider(self._options.credentials, needs=NEEDS, timeout_s=provider_timeout_s(self._options))
        if self._options.profile is not None:
            from obstore.auth.boto3 import Boto3CredentialProvider

            session = self._profile()
            return CredentialProvider(
                f"profile {self._options.profile}",
                lambda: Boto3CredentialProvider(session),
                needs=NEEDS,
                timeout_s=provider_timeout_s(self._options),
            )
        return None

    def _profiles_region(self) -> str | None:
        return None if self._options.profile is None else self._profile().region_name

    def _profile(self) -> Any:
        import boto3
        from botocore.exceptions import BotoCoreError

        if self._session is None:
            try:
                self._session = boto3.Session(profile_name=self._options.profile)
            except BotoCoreError as error:
                raise NotPermitted(f"s3://{self._bucket}: {error}; check ~/.aws and option profile") from None
        return self._session


def check_endpoint(endpoint: str | None) -> str | None:
    """Return the endpoint unchanged, if it is a server's URL and nothing more.

    Raises:
        InvalidPath: it is not an endpoint, or contains credentials, which are not repeated.
    """
    if endpoint is None:
        return None
    if "@" in endpoint:
        raise InvalidPath(
            "the endpoint contains credentials; leave them to the environment, a role, a profile or a provider"
        )
    if not _ENDPOINT.fullmatch(endpoint):
        raise InvalidPath(f"endpoint {endpoint!r} is not a server's URL, such as 'https://minio.example:9000'")
    return endpoint.rstrip("/")


def client_options(options: StorageOptions, timeout_s: float, *, endpoint: str | None) -> dict[str, Any]:
    """Return the options of the vendor's HTTP client."""
    client: dict[str, Any] = {
        "timeout": f"{timeout_s * 1000:.0f}ms",
        "connect_timeout": f"{options.connect_timeout_s * 1000:.0f}ms",
        "allow_http": endpoint is not None and endpoint.startswith("http:"),
    }
    if options.ca_file is not None:
        try:
            client["root_certificate"] = Path(options.ca_file).read_bytes()
        except OSError as error:
            raise NotPermitted(f"option ca_file: {options.ca_file} cannot be read: {error.strerror}") from error
    return client


def provider_timeout_s(options: StorageOptions) -> float:
    """Return the time limit of a provider of credentials: less than a request's, so that the error names the
    provider.
    """
    return options.request_timeout_s / 2


def _endpoint_of_environment() -> str | None:
    """Return the endpoint that the vendor's library would use, in its order of variables."""
    return next((os.environ[name] for name in _ENDPOINT_VARIABLES if os.environ.get(name)), None)


def _with_bucket(endpoint: str, bucket: str) -> str:
    scheme, _, host = endpoint.partition("://")
    return f"{scheme}://{bucket}.{host}"
