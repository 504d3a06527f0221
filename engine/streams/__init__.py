"""Streams: rows of many callers in shared files and commits, acknowledged when they are committed.

Knows: ``jobs``, through a way to open one. Does not know: ``table``, which opens streams, nor any engine.
"""
