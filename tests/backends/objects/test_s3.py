"""S3 keeps the contract: on moto, whose requests are made atomic, and which boto3 looks into."""

import pytest

from tallymark.backends.testing import ObjectStoreConformance
from tests.backends.objects.s3_peek import S3Peek


class TestS3(ObjectStoreConformance):
    """Fewer objects than elsewhere: the server takes some hundred requests a second."""

    loops = ("trio",)
    listed_object_count = 2_500
    deleted_object_count = 1_100

    @pytest.fixture
    def peek(self, s3, bucket):
        return S3Peek(s3, bucket)
