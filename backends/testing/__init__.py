"""Storage contract as tests for any backend. Needs pytest.

Subclass the class of your store's family and give it a fixture ``peek``; "Test your own backend" in
``docs/storage.md`` shows how.

    store       what a test needs of a store: the backend, and a view that does not use it
    ..._promises    each promise of ``backends/contract.py``, one test each
    conformance     the promises of each family, in one class
"""

try:
    import pytest
except ImportError as error:
    raise ImportError(
        "tallymark.backends.testing contains tests for pytest, which is missing: pip install pytest"
    ) from error

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{kind}_promises"
        for kind in ("object", "put_new", "list", "delete", "name", "data_file", "staging", "put_if_absent", "large")
    )
)

from tallymark.backends.testing.conformance import ObjectStoreConformance, StagingConformance  # noqa: E402
from tallymark.backends.testing.store import STAGING, Peek, listed  # noqa: E402

__all__ = ["ObjectStoreConformance", "StagingConformance", "Peek", "STAGING", "listed"]
