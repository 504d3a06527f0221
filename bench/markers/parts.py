"""The parts of a run, as they are chosen. ``slow`` takes ten minutes by itself, and has to be asked for."""

PARTS = ("beside", "published", "recovery", "throughput", "model", "pace")

ALL = (*PARTS, "slow")
