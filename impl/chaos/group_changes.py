"""Members that seem to join and leave groups at one broker, so that clients rebalance.

A client learns of a change by NOTIFY_CONSUMER_IDS_CHANGED, and then queries the members. The proxy changes
the answers for a while, and notifies the clients at the beginning and at the end.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from mqproof.impl.chaos.draws import Firing

GHOST: Final = "chaos-proxy@ghost"
"""The id of the member that does not exist."""
_STORM_ROUNDS: Final = 4
_STORM_S: Final = 0.15

NAMES: Final = frozenset({"member_joins", "member_unknown", "rebalance_storm"})
"""The faults of this module."""


@dataclass(slots=True)
class GroupChanges:
    """The groups of one broker whose members the clients see changed."""

    notify: Callable[[str], None]
    """Notifies the clients of a group that its members changed."""
    _joined: set[str] = field(default_factory=set)
    _hidden: dict[str, str] = field(default_factory=dict)
    _timers: dict[str, list[asyncio.TimerHandle]] = field(default_factory=dict)
    """The coming changes of each group. A group has one fault at a time."""

    def begin(self, firing: Firing, members: list[str]) -> bool:
        """Begin a fault. Returns False if it cannot act: another one does, or there is no second member."""
        group = firing.subject.group
        if group in self._timers:
            return False
        if firing.name == "rebalance_storm":
            self._joined.add(group)
            changes = [(number * _STORM_S, number % 2 == 0) for number in range(1, 2 * _STORM_ROUNDS)]
            self._schedule(group, changes)
            return True
        if firing.name == "member_unknown":
            if len(members) < 2:
                return False
            self._hidden[group] = sorted(members)[int(firing.uniform("member") * len(members))]
        else:
            self._joined.add(group)
        self._schedule(group, [(firing.delay_ms / 1000, False)])
        asyncio.get_running_loop().call_soon(self.notify, group)  # the other members
        return True

    def members(self, group: str, ids: list[str]) -> list[str]:
        """Return the members as a client sees them."""
        if group in self._joined:
            return [*ids, GHOST]
        hidden = self._hidden.get(group)
        return [one for one in ids if one != hidden]

    def end(self) -> None:
        """End all faults now."""
        for group, timers in list(self._timers.items()):
            for timer in timers:
                timer.cancel()
            self._change(group, False)
            self._forget(group)

    def _schedule(self, group: str, changes: list[tuple[float, bool]]) -> None:
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(at_s, self._change, group, joins) for at_s, joins in changes]
        last_s = changes[-1][0]
        self._timers[group] = [*timers, loop.call_later(last_s + _STORM_S, self._forget, group)]

    def _change(self, group: str, joins: bool) -> None:
        self._hidden.pop(group, None)
        (self._joined.add if joins else self._joined.discard)(group)
        self.notify(group)

    def _forget(self, group: str) -> None:
        self._timers.pop(group, None)
