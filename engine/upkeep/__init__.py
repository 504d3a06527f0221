"""Upkeep of a table's layout, beside its writers: small files merged into larger ones.

Knows: ``jobs``, as any writer does. Does not know: who starts it.
"""
