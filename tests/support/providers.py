"""Providers of credentials, as users would write them; named by ``tests.support.providers:...``."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

CANARY = "canary-0xC0FFEE"
"""What may stand in no message, log or repr."""

calls: list[str] = []
"""The providers that were asked, in order."""


def lasting() -> dict[str, Any]:
    calls.append("lasting")
    return {"access_key_id": "LASTING", "secret_access_key": CANARY, "token": f"token-{CANARY}"}


def expired() -> dict[str, Any]:
    """Never valid for longer than the request that it was asked for."""
    calls.append("expired")
    moment = datetime.now(UTC) - timedelta(seconds=1)
    return {"access_key_id": f"EXPIRED{len(calls)}", "secret_access_key": CANARY, "token": None, "expires_at": moment}


def failing() -> dict[str, Any]:
    raise RuntimeError(f"the key is {CANARY}")


def interrupted() -> dict[str, Any]:
    raise ConnectionResetError(f"the key is {CANARY}")


def hanging() -> dict[str, Any]:
    threading.Event().wait(20)
    return lasting()


def empty() -> dict[str, Any]:
    return {"access_key_id": CANARY}


def naive() -> dict[str, Any]:
    return {"access_key_id": CANARY, "secret_access_key": CANARY, "expires_at": datetime(2026, 1, 1)}  # noqa: DTZ001


def nothing() -> None:
    return None


no_function = CANARY
