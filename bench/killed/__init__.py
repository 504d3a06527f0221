"""Question ``killed``: what remains of a killed write. Sides, sessions and workers are those of ``writes``."""
