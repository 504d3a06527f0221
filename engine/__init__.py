"""The core: knows the storage contract, no vendor and no Spark.

``markers`` and ``timeline`` stand below, ``service`` serves markers, ``files`` is what a task does, ``writes`` a job.
"""
