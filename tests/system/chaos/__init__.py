"""Real processes amid chaos: writers of three tables in every mode, that are killed, stopped and lied to; then a judge.

Run as ``python -m tests.system.chaos --store local --minutes 30 --seed 1``.
"""
