"""Clients in other threads and processes, while the time of their broker is advanced.

Their own time does not pass. They need the machine's time to receive what became due and to act on it.
"""

import asyncio
import time
from typing import Final

from mqproof.impl.broker.broker import Broker
from mqproof.impl.namesrv.server import NameServer

_LOOK_S: Final = 0.002
_QUIET_S: Final = 0.02
"""Clients have acted when nothing arrives for this long."""
_ACT_S_MAX: Final = 1.0
"""The longest wait for clients that do not ask again for what they got."""


class OutsideClients:
    """What `VirtualTime.advance_by` calls after each step, so that outside clients keep up with it."""

    def __init__(self, broker: Broker, name_server: NameServer, *, keep: bool) -> None:
        """With `keep`, the clients count as heard after each step, and do not expire."""
        self._broker = broker
        self._name_server = name_server
        self._keep = keep
        self._traffic = broker.traffic()

    async def after_step(self, was_due: bool) -> None:
        if self._keep:
            self._broker.count_clients_as_heard()
            self._name_server.count_clients_as_heard()
        if was_due:
            await self._act()
        self._traffic = self._broker.traffic()

    async def _act(self) -> None:
        """Wait until the clients have asked again for all that was answered, and then send no more.

        A consumer that got a message pulls again. What it does about the message, such as sending it back,
        it does at about the same time.
        """
        waiting = self._traffic.unanswered
        traffic, quiet_since_s = self._broker.traffic(), time.monotonic()
        until_s = quiet_since_s + _ACT_S_MAX
        while (now_s := time.monotonic()) < until_s:
            await asyncio.sleep(_LOOK_S)
            before, traffic = traffic, self._broker.traffic()
            if traffic.activity != before.activity:
                quiet_since_s = now_s
            elif now_s - quiet_since_s >= _QUIET_S and traffic.unanswered >= waiting:
                return
