"""HDFS as storage: ``hdfs://namenode:port/path`` or ``hdfs://nameservice/path``. Needs the extra ``[hdfs]``.

backend         the contract on HDFS
client          hdfs-native's blocking client, each call within a time limit
staged_file     data files in their staging directory
rename_outcome  whether a rename whose answer was lost has happened
shutdown_guard  calls in flight when the process ends
errors          translation of the NameNode's errors
"""

from tallymark.backends.hdfs.backend import SCRATCH, SCRATCH_AGE_MAX_S, HdfsBackend, parse_hdfs
from tallymark.backends.hdfs.client import HdfsClient

__all__ = ["HdfsBackend", "HdfsClient", "parse_hdfs", "SCRATCH", "SCRATCH_AGE_MAX_S"]
