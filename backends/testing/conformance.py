"""Conformance classes: each promise of ``backends/contract.py`` is a test. A finished backend passes them all.

A backend is tested by a subclass of the class for its family, with a fixture ``peek``: a fresh, empty store, and a view
of it that does not use the backend under test (``store.Peek``).
"""

from tallymark.backends.testing.data_file_promises import DataFilePromises
from tallymark.backends.testing.delete_promises import DeletePromises
from tallymark.backends.testing.large_promises import LargePromises
from tallymark.backends.testing.list_promises import ListPromises
from tallymark.backends.testing.name_promises import NamePromises
from tallymark.backends.testing.object_promises import ObjectPromises
from tallymark.backends.testing.put_if_absent_promises import PutIfAbsentPromises
from tallymark.backends.testing.put_new_promises import PutNewPromises
from tallymark.backends.testing.staging_promises import StagingPromises


class _Conformance(
    ObjectPromises, PutNewPromises, ListPromises, DeletePromises, NamePromises, DataFilePromises, LargePromises
):
    """What both families promise."""


class StagingConformance(_Conformance, StagingPromises):
    """For stores that can rename: local disk, HDFS."""


class ObjectStoreConformance(_Conformance, PutIfAbsentPromises):
    """For stores that cannot: S3, GCS."""
