"""Dry runs of a write: what it would add, replace and cost."""
