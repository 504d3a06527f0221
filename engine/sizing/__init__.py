"""Which rows go to which file: what is known of them, and the plan that follows. Pure: no storage, no clock.

``planning.plan`` is all a job asks; what it plans, task writers carry out (``files``) and jobs commit (``writes``).
"""

from tallymark.engine.sizing.plan import PlannedFile, SizingPlan
from tallymark.engine.sizing.profile import CommitSize, IncomingRows, Sample, WorkloadProfile
from tallymark.engine.sizing.tasks import tasks_of

__all__ = ["tasks_of", "PlannedFile", "SizingPlan", "CommitSize", "IncomingRows", "Sample", "WorkloadProfile"]
