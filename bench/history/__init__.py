"""Question ``history``: what opening, committing and cleaning cost after many commits."""
