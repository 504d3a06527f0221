"""Histogram of the times that marker requests waited for their acks."""

from tallymark.engine.markers.histogram import TIME_BOUNDS_S, Histogram


class AckTimes(Histogram):
    """Times in seconds."""

    def __init__(self) -> None:
        super().__init__(TIME_BOUNDS_S)
