"""What happened to a table, in which order: instants, the commit log that decides, and its Hudi projection.

``reservation`` of an ``instant`` -> ``lease`` -> ``log`` of ``entry`` after ``conflict`` -> ``history`` ->
``projection`` of ``properties`` and entries into files of the Hudi format.
"""
