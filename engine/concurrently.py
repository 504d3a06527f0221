"""The same act on many things, a bounded number at a time; storage needs it, too, and so it lies there."""

from tallymark.backends.concurrently import concurrently

__all__ = ["concurrently"]
