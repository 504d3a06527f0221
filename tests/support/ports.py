"""Ports of this machine."""

import socket


def free_port() -> int:
    """Return one that was free a moment ago, on every address."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        return int(server.getsockname()[1])
