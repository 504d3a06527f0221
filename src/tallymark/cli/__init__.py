"""The command line: ``tallymark status | timeline | markers | rollback | clean | doctor``.

``command`` says what there is, ``asking`` how the table is asked and how that ends, ``storage`` reads ``--storage``.
``document`` is the answer as ``--json`` prints it, ``tables`` and ``page`` show the same to people; ``doctor`` examines
a store, ``watch`` counts markers while they come.
"""

from tallymark.cli.command import main

__all__ = ["main"]
