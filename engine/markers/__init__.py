"""Markers: notes that a data file may be being written, durable before its first byte.

The way of a request: ``directory.create`` -> ``queue`` -> ``pace`` -> ``batch`` -> ``group_commit`` -> ``flush`` of a
``segment`` -> ``directory.complete`` -> answer. ``loading`` reads what is there; ``direct`` needs no engine at all.
Beside it: ``hedge`` sends a late put once more, ``merge`` makes few segments of many as ``merge_plan`` says.
``process_markers`` counts all of it for metrics; ``watch`` looks on from another process.
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
