"""File-system views: the files of a table at a position of its commit log, by partition, without listing.

Path of a file: an entry of the log (``timeline``) -> ``View.sync`` -> ``block`` (packed rows of a partition) in a
``ViewStore`` -> ``ViewAt``, the answers as of one position.
"""
