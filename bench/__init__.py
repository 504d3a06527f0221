"""Benchmark harness: one module or package per question, whose results are tables, a JSON file and a chart.

    python -m tallymark.bench             the questions
    python -m tallymark.bench backends    cost of a storage call over the vendor's library

Nothing in the library imports this package. A figure is meaningful only beside the other side's of the same run.
"""
