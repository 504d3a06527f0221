"""Where a task's markers come from: the job's service (``service.client``), the task itself (``direct_markers``), or
whichever of both can be had (``fallback_markers``).
"""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from tallymark.engine.markers.name import MarkerIo


class MarkerSource(Protocol):
    def ask(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        """Ask for a marker of each data file; ``io`` says how they are to be written. When the future has a result,
        all of them survive a crash.

        Returns at once; may be called from any thread.
        """
        ...
