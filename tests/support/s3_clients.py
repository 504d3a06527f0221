"""S3 backends as tests need them: that repeat at once, or not at all."""

from typing import Any

import pytest

from tallymark.backends import StorageOptions
from tallymark.backends.meter import RequestMeter
from tallymark.backends.retry import Retries, RetrySettings
from tallymark.backends.retrying import RetryingBackend
from tallymark.backends.s3 import S3Backend
from tests.support.services.s3_server import REGION

AT_ONCE = RetrySettings(pause_s=0, throttled_pause_s=0, budget_count=1000)
ONCE = RetrySettings(attempt_count=1)


def s3_backend(
    endpoint: str, bucket: str, retry: RetrySettings = AT_ONCE, prefix: str = "", **options: Any
) -> S3Backend:
    """The store itself, which repeats nothing but put_new."""
    meter = RequestMeter()
    made = StorageOptions(endpoint=endpoint, region=REGION, **options)
    return S3Backend(bucket, prefix, made, Retries(retry, meter=meter, where=f"s3://{bucket}"), meter)


def retrying_s3(endpoint: str, bucket: str, retry: RetrySettings = AT_ONCE, **options: Any) -> RetryingBackend:
    """The store as ``open_backend`` gives it, but for its pauses."""
    inner = s3_backend(endpoint, bucket, retry, **options)
    return RetryingBackend(inner, inner._retries)


def patience_s(request: pytest.FixtureRequest, *, late_s: float) -> float:
    """For one request: half of what comes late, in a test named after the fault "timeout"; else the library's own."""
    return late_s / 2 if "timeout" in request.node.name else StorageOptions().request_timeout_s
