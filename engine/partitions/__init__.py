"""Partition paths and values, and the rows and writes that they select."""
