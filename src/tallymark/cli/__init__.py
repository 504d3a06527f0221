"""The command line, ``tallymark COMMAND``: inspection and maintenance of tables.

``command`` is the group of the commands, and each command is a module: its options, the keys of its ``--json`` document
and its page for people. ``asking`` opens the table and ends the process, ``storage`` parses ``--storage``, ``document``
writes every JSON document, and ``page`` contains the parts of every page. ``examine`` runs the doctor, ``watch`` counts
markers while a job runs.
"""

from tallymark.cli.command import main

__all__ = ["main"]
