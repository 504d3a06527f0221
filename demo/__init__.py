"""The demo: a real PySpark job survives a killed task and a killed driver without a stray file.

``python -m demo [folder]`` plays it in five steps::

    killed_task -> corrected_month -> killed_driver -> four_readers -> marker_costs

Its claims are checked without the library: in the folder, in ``/proc`` and with independent readers.
"""
