"""The command line: ``tallymark status | timeline | markers | rollback | clean | doctor``.

``command`` asks the table, ``storage`` reads ``--storage``, ``document`` is the answer as ``--json`` prints it,
``tables`` shows the same to people; ``doctor`` examines a store.
"""

from tallymark.cli.command import main

__all__ = ["main"]
