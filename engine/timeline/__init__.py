"""The order of a table's changes: instants, the commit log that decides them, and its Hudi projection.

``reservation`` of an ``instant`` -> ``lease`` -> ``log`` of ``entry`` after ``conflict`` -> ``history`` ->
``projection`` of ``properties`` and entries into files of the Hudi format.
"""
