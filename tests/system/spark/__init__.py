"""Whole Spark jobs whose tasks, executors and drivers fail or are killed."""
