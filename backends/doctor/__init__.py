"""Does this store keep the contract? The doctor asks it, in half a minute, from where the jobs will run.

    practice        a directory of the doctor's own below a URL, and its removal
    examine         every promise in turn, within a bound
    promises        how a promise of ``backends/contract.py`` is put to the test
    large           one object of 5 GB
    latency         how long each verb takes, and how far the clocks are apart
    traces          what the doctor has put
    ground          what file system a local directory lies on
    diagnosis       what was found

It asks less than the conformance suite in ``backends/testing``, which takes minutes and a store of its own. What it
finds broken is broken; what it finds kept was kept while it looked.
"""

from tallymark.backends.doctor.diagnosis import Diagnosis, Finding, Latency
from tallymark.backends.doctor.examine import Examination
from tallymark.backends.doctor.ground import Ground
from tallymark.backends.doctor.practice import practice

__all__ = ["practice", "Examination", "Diagnosis", "Finding", "Latency", "Ground"]
