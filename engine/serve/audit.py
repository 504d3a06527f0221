"""The audit log of a service: a line for each request of a driver, on the logger ``tallymark.audit``.

An operator sends that logger to a sink of its own. No line has a token, a key or a query.
"""

from tallymark.backends.events import EventLog
from tallymark.engine.serve.logs import AUDIT

_events = EventLog(AUDIT)


def audited(operation: str, *, client: str, token: str | None, table: str, instant: str, outcome: str) -> None:
    """Record what a client was answered. ``token`` is the id of the one that it has presented, and that is known."""
    _events.info(
        "audit.answered",
        operation=operation,
        client=client,
        token=token,
        table=table,
        instant=instant,
        outcome=outcome,
    )
