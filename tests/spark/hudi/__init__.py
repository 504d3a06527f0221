"""Hudi, its writers and its readers on the JVM, with a real Spark."""
