"""Markers: durable notes, each made before its data file is started, that the file may exist.

A request passes ``directory.create`` -> ``queue`` -> ``pace`` -> ``batch`` -> ``group_commit`` -> ``flush`` of a
``segment`` -> ``directory.complete`` -> a check that the instant is still open -> answer. ``loading`` reads the markers
that storage contains; ``direct`` puts markers without an engine, and ``direct_flag`` shows a job that its tasks did.
``hedge`` sends a late put a second time, ``merge`` replaces many segments by few, as its ``MergePlan`` decides.
``process_markers`` sums the counts for metrics. Another process reads a directory by ``inspection.watch``.
"""

from tallymark.engine.markers.answer import MarkerAnswer
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.markers.engine import MarkerEngine, open_marker_engine
from tallymark.engine.markers.name import MarkerName
from tallymark.engine.markers.statistics import MarkerStatistics

__all__ = [
    "open_marker_engine",
    "MarkerEngine",
    "MarkerDirectory",
    "MarkerAnswer",
    "MarkerName",
    "MarkerStatistics",
]
