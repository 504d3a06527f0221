"""The command line, ``tallymark COMMAND``: inspection and maintenance of tables.

``command`` is the group of the commands, and each command is a module: its options and its page for people. What it
prints with ``--json`` is in ``engine/documents``. ``asking`` opens the table and ends the process, ``storage`` parses
``--storage``, and ``page`` contains the parts of every page. ``examine`` runs the doctor, and ``watch`` counts markers
while a job runs.
"""

from tallymark.cli.command import main

__all__ = ["main"]
