"""Counters of this process's jobs and marker engines, and their Prometheus bridge."""
