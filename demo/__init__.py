"""The demo: a real PySpark job survives a killed task and a killed driver without a stray file.

``python -m demo [folder]`` tells it in five steps::

    killed_task -> corrected_month -> killed_driver -> four_readers -> marker_costs

What it claims it has looked up around the library: in the folder, in ``/proc`` and with readers that nobody here wrote.
"""
