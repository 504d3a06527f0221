"""How long answers took: the shares of them that took no longer."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds; each of these quantiles is one of the samples, the smallest that so many do not exceed."""

    count: int
    p50_s: float
    p90_s: float
    p99_s: float
    p999_s: float
    max_s: float

    @classmethod
    def of(cls, samples_s: Iterable[float]) -> "Latency":
        found = sorted(samples_s)
        assert found, "somebody was asked something"

        def quantile(share: float) -> float:
            return found[max(0, -(-int(share * 1000 * len(found)) // 1000) - 1)]

        return cls(
            count=len(found),
            p50_s=quantile(0.5),
            p90_s=quantile(0.9),
            p99_s=quantile(0.99),
            p999_s=quantile(0.999),
            max_s=found[-1],
        )
