"""What holds for all tests."""

from hypothesis import settings

from tests.support.gcs_facade import gcs
from tests.support.minidfs import dfs
from tests.support.s3_clients import s3_keys
from tests.support.s3_server import bucket, s3

__all__ = ["bucket", "dfs", "gcs", "s3", "s3_keys"]

# A deadline measures the machine, not the code. Where CI is set, Hypothesis draws the same examples each time.
settings.register_profile("tallymark", settings(), deadline=None, print_blob=True)
settings.load_profile("tallymark")
