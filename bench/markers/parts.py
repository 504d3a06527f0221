"""Parts of the question ``markers``, by name. Imports nothing: the command line reads it first."""

PARTS = (
    "beside",
    "published",
    "recovery",
    "throughput",
    "model",
    "pace",
    "outside",
    "disturbed",
    "crowd",
    "pages",
    "fleet",
    "commits",
    "hudi",
)
"""Parts of a run; ``slow`` takes ten minutes and runs only when it is named."""
