"""The servers, the clients and the counts of one run of a scenario."""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Final, Protocol

from mqproof.conformance.adapters.clients.driver_client import (
    DriverClient,
    DriverError,
    Event,
    UnsupportedError,
)
from mqproof.conformance.client_scenarios.sites import Site
from mqproof.conformance.client_scenarios.tally import Tally, tally

SECONDS_MAX: Final = 150.0
"""The limit on one wait: released clients notice some changes only after 30 s or more."""
SETTLE_S: Final = 1.5
"""How long a run still listens for messages that must not come."""
POSITIONS_S: Final = 2.5
"""How long clients and brokers take to store their positions, with the configuration of a site."""
_TRIES: Final = 5


class StartClient(Protocol):
    """Starts the client under test, in a process of its own."""

    def __call__(self, name: str, traces: bool) -> AbstractContextManager[DriverClient]: ...


class Stage:
    """One run of a scenario. Its topic and group are its own, also on a store of earlier runs."""

    def __init__(
        self, site: Site, start_client: StartClient, name: str, folder: Path, ending: ExitStack
    ) -> None:
        self.site = site
        self.folder = folder
        run = uuid.uuid4().hex[:8]
        self.topic = f"{name}-{run}-topic"
        self.group = f"{name}-{run}-group"
        self.kills = 0
        self.counts = Tally()
        self.problems: list[str] = []
        """What is wrong besides the counts: order, times, replies."""
        self.notes: list[str] = []
        """What was measured."""
        self.failed_sends: list[str] = []
        """The errors of sends that were tried again."""
        self._start_client = start_client
        self._ending = ending

    def client(self, name: str = "a", *, traces: bool = False) -> DriverClient:
        """Start a process with the client under test; it ends with the run."""
        return self._ending.enter_context(self._start_client(name, traces))

    def crash(self) -> None:
        """Kill the broker and start it again.

        Before that, clients and the broker have time to store their positions, which they do at intervals.
        """
        time.sleep(POSITIONS_S)
        self.site.crash()
        self.kills += 1

    def put(self, client: DriverClient, body: str, **options: object) -> Event:
        """Send a message, again if the broker has just restarted and the client did not notice.

        A send that failed may have stored the message, so only a failed connection may be tried again.
        """
        for _ in range(_TRIES - 1):
            try:
                return client.put(self.topic, body, **options)  # type: ignore[arg-type]
            except UnsupportedError:
                raise
            except DriverError as error:
                self.failed_sends.append(str(error)[:120])
                time.sleep(1)
        return client.put(self.topic, body, **options)  # type: ignore[arg-type]

    def wait(
        self, clients: Iterable[DriverClient], is_done: Callable[[], bool], seconds_max: float = SECONDS_MAX
    ) -> bool:
        """Listen to the clients until `is_done`, and return whether it became true in time."""
        deadline = time.monotonic() + seconds_max
        listening = list(clients)
        while not is_done():
            if time.monotonic() > deadline:
                return False
            for client in listening:
                while client.listen(0.05 / len(listening)):
                    pass
        return True

    def collect(
        self, client: DriverClient, consumer: str, expected: Iterable[str], seconds_max: float = SECONDS_MAX
    ) -> bool:
        """Wait until the consumer has received each body as often as it is expected."""
        wanted = Counter(expected)
        return self.wait([client], lambda: not wanted - Counter(bodies(client, consumer)), seconds_max)

    def add(self, expected: Iterable[str], got: Iterable[str]) -> None:
        """Add the counts of messages that no consumer listens for."""
        self.counts += tally(Counter(expected), got)

    def count(
        self, client: DriverClient, consumer: str, expected: Iterable[str], optional: Iterable[str] = ()
    ) -> None:
        """Listen a little longer, and add the counts of the consumer."""
        self.wait([client], lambda: False, SETTLE_S)
        self.counts += tally(Counter(expected), bodies(client, consumer), frozenset(optional))


def bodies(client: DriverClient, consumer: str) -> list[str]:
    """Return the bodies that the consumer has received, in order."""
    return [str(event["body"]) for event in client.of(consumer)]
