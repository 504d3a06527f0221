"""Upkeep that any writer does: recovery of dead writers, cleaning, expiry of replaced files, checkpoints."""
