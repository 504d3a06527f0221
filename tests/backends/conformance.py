"""The promises of ``backends/contract.py``, each one a test. A backend is finished when it passes them all.

A backend joins by a subclass of the class for its family, with a fixture ``peek``: a fresh, empty store, and a look at
it that does not go through the backend under test (``tests/backends/peek.py``).
"""

from tests.backends.data_file_promises import DataFilePromises, PutIfAbsentPromises, StagingPromises
from tests.backends.object_promises import ObjectPromises


class StagingConformance(ObjectPromises, DataFilePromises, StagingPromises):
    """For stores that can rename: local disk, HDFS."""


class ObjectStoreConformance(ObjectPromises, DataFilePromises, PutIfAbsentPromises):
    """For stores that cannot: S3, GCS."""
