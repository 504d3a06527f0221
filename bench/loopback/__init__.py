"""A server that speaks just enough of S3, in memory, in a process of its own, as fast as Python allows: the store that
costs nearly nothing, so that what the client side costs can be seen.

It is not a model of S3: it checks no signatures, never fails, and copies at once. It may wait before each answer, as a
store that is far away does. ``objects`` is the one bucket and its answers, ``listing`` those with many names,
``uploads`` what comes in several parts, ``rate`` how many objects a second it lets be changed, ``connection`` the HTTP,
``server`` the process.
"""

from tallymark.bench.loopback.server import credentials, seen, server

__all__ = ["server", "seen", "credentials"]
