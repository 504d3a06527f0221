"""Bytes that nobody has written, given to whoever reads bytes: ``python -m tests.fuzz --inputs 10000000``.

A module of ``targets`` each: ``target(data)`` raises unless all that must hold did hold; ``seeds()`` are bytes of real
encoders, to begin with. ``test_targets`` gives each a few hundred inputs in the normal run.
"""
