"""Markers: durable notes, each made before its data file is started, that the file may exist.

A request passes ``directory.create`` -> ``queue`` -> ``pace`` -> ``batch`` -> ``group_commit`` -> ``flush`` of a
``segment`` -> ``directory.complete`` -> answer. ``loading`` reads the markers that storage contains; ``direct`` puts
markers without an engine. ``hedge`` sends a late put a second time, ``merge`` replaces many segments by few, as
``merge_plan`` decides. ``process_markers`` sums the counts for metrics; ``watch`` reads a directory from another
process.
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
