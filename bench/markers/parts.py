"""The parts of a run, as they are chosen."""

PARTS = ("beside", "published", "recovery", "throughput", "model")
