"""Checks of settings: each error names the setting, its value and the rule."""

import ipaddress

from tallymark.engine.errors import InvalidRequest


def check_settings(name: str, value: object, kind: type) -> None:
    """Raise InvalidRequest if the value given for this setting is of another type."""
    if not isinstance(value, kind):
        raise InvalidRequest(
            f"{name}={value!r} is not a {kind.__name__}: give {name}={kind.__name__}(), with what differs from its "
            "defaults, or leave it out"
        )


def check(holds: bool, name: str, value: object, rule: str) -> None:
    """Raise InvalidRequest with the setting, its value and the rule, unless the rule holds."""
    if not holds:
        raise InvalidRequest(f"setting {name}={value!r}: {name} {rule}")


def check_at_least(least: int, name: str, value: object) -> None:
    """Raise InvalidRequest unless the value is a whole number of at least ``least``."""
    check(is_count(value, least=least), name, value, f"is a whole number, {least} or more")


def check_not_negative(name: str, value: object) -> None:
    """Raise InvalidRequest unless the value is a number of at least 0."""
    check(is_number(value, least=0), name, value, "is a number, 0 or more")


def check_above_zero(name: str, value: object) -> None:
    """Raise InvalidRequest unless the value is a number above 0."""
    check(is_number(value, least=0) and value != 0, name, value, "is a number above zero")


def is_network(value: object) -> bool:
    """Return whether the value is a network, such as ``10.1.0.0/16``."""
    try:
        return isinstance(value, str) and bool(ipaddress.ip_network(value))
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine by an address that no other machine reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_count(value: object, *, least: int) -> bool:
    """Return whether the value is a whole number of at least ``least``; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: object, *, least: float) -> bool:
    """Return whether the value is a number of at least ``least``; True, False and NaN are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= least
