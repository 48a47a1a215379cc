"""Client ids as RocketMQ builds them: `ADDRESS@INSTANCE`, and `ADDRESS@INSTANCE@UNIT` for a client of a unit.

See docs/reference/protocol/clients.md, "Client ids".
"""

import os
import socket
import time
from typing import Final

DEFAULT_INSTANCE: Final = "DEFAULT"
"""The instance name that RocketMQ replaces by the process id and a time, so that each client is another."""


def client_id(instance: str | None = None, unit: str | None = None) -> str:
    """Return the id of a client in this process. Without an instance name, no two clients have the same id.

    Raises:
        ValueError: a name contains `@` or is blank.
    """
    for name, value in (("instance", instance), ("unit", unit)):
        if value is not None and (not value.strip() or "@" in value):
            raise ValueError(f"{name} {value!r}: some text without @ expected")
    if instance is None or is_unique(instance):
        instance = f"{os.getpid()}#{time.monotonic_ns()}"
    return "@".join([local_address(), instance, *([unit] if unit else [])])


def is_unique(instance: str | None) -> bool:
    """Return whether no other client has the id with this instance name."""
    return instance is None or instance == DEFAULT_INSTANCE


def local_address() -> str:
    """Return the address from which this machine reaches others; 127.0.0.1 if there is none.

    Nothing is sent: connecting a datagram socket only selects the route.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address: str = probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"
    return address
