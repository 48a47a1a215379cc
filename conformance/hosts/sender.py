"""A client that sends until its message is stored, whichever broker is the master then."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mqproof.conformance.hosts.processes import ClusterError
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import Sent

_SECONDS_MAX: Final = 120.0
_POLL_S: Final = 0.02


class Sender:
    """Sends with a client that knows only name servers."""

    def __init__(self, client: BlockingClient) -> None:
        self._client = client

    def send_until_stored(self) -> float:
        """Return the time of storing, by time.perf_counter. Raises ClusterError: it takes too long."""
        deadline = time.monotonic() + _SECONDS_MAX
        while time.monotonic() < deadline:
            if isinstance(self._client.send(new_message("bench", b"x")), Sent):
                return time.perf_counter()
            time.sleep(_POLL_S)
        raise ClusterError(f"the client could not send a message within {_SECONDS_MAX:.0f} s")


@contextmanager
def sender(name_server: str) -> Iterator[Sender]:
    with BlockingClient(name_server) as client:
        yield Sender(client)
