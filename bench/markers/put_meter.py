"""A meter of the measured wrapper that also adds up how long puts took: a mean, beside the quantiles."""

from tallymark.backends.meter import Outcome, RequestClass, RequestMeter


class PutMeter(RequestMeter):
    def __init__(self) -> None:
        super().__init__()
        self.puts = 0
        """Those that were done."""
        self.puts_s = 0.0
        """What they took together."""

    def record(
        self, request_class: RequestClass, outcome: Outcome, *, sent: int = 0, received: int = 0, seconds: float = 0.0
    ) -> None:
        super().record(request_class, outcome, sent=sent, received=received, seconds=seconds)
        if (request_class, outcome) == ("put", "ok"):
            self.puts += 1
            self.puts_s += seconds
