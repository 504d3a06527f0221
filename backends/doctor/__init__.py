"""Examination of a store within half a minute, from the machine where the jobs will run: does it keep the contract?

    practice        a separate directory below a URL, and its removal
    examine         every promise in turn, within a time limit
    probes          a probe per promise, by the checks of ``backends/checks.py``
    large           a data file of 5 GB
    latency         time per verb, and the difference of the clocks
    traces          what the doctor has put
    file_system     the file system below a local directory
    diagnosis       the findings

It checks less than the conformance suite in ``backends/testing``, which takes minutes and needs an empty store. A
promise found broken is broken; one found kept was kept during the examination.
"""

from tallymark.backends.doctor.diagnosis import Diagnosis, Finding, Latency
from tallymark.backends.doctor.examine import Examination
from tallymark.backends.doctor.file_system import LocalFileSystem
from tallymark.backends.doctor.practice import practice

__all__ = ["practice", "Examination", "Diagnosis", "Finding", "Latency", "LocalFileSystem"]
