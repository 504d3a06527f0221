"""What a table holds at a position of its commit log, partition by partition, without listing it.

The way of a file: an entry of the log (``timeline``) -> ``View.sync`` -> ``block`` (packed rows of a partition) in a
``ViewStore`` -> ``ViewAt``, the answers as of one position.
"""
