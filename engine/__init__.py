"""The engine: everything but storage and Spark. It uses the storage contract, and imports no vendor's library.

``table`` is the entrance: ``open_table`` and ``Table``. ``jobs`` writes, on top of ``instants`` (the life of an
instant) and ``maintenance`` (recovery of dead writers, cleans); ``planning`` and ``inspection`` only read. ``tasks`` is
what runs in executors, with markers and lookups over ``rpc``. ``markers`` and ``timeline`` are the foundation. Each
package states in its ``__init__`` what it is for; ``docs/architecture.md`` has the order of imports.
"""
