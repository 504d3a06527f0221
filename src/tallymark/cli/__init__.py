"""The command line: ``tallymark status | timeline | markers | rollback | clean``.

``command`` asks the table, ``document`` is the answer as ``--json`` prints it, ``tables`` shows the same to people.
"""

from tallymark.cli.command import main

__all__ = ["main"]
