"""How many objects a second may be put or deleted: a store refuses what comes faster, this one lets it wait.

That is kinder than S3, which asks its clients to slow down without a rate: no request is refused here.
"""


class Rate:
    """Sync; times are arguments, in seconds of a monotonic clock."""

    def __init__(self, per_s: float) -> None:
        """0: as many as come."""
        self._gap_s = 1 / per_s if per_s else 0.0
        self._free_at = float("-inf")

    def wait_s(self, count: int, now: float) -> float:
        """Until so many more may have been changed."""
        if not count or not self._gap_s:
            return 0.0
        self._free_at = max(self._free_at, now) + count * self._gap_s
        return self._free_at - now
