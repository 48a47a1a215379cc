"""Records what is observed of half messages and timed messages in a simulated cluster.

The log of the master is read directly, in one step and without the network. Records of deleted segments are
kept.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from mqproof.conformance.hosts.simulated import MASTER, Cluster
from mqproof.conformance.suites.flush.steps import End as BrokerEnd
from mqproof.conformance.suites.transactions.target import End
from mqproof.fuzz.deferred import judge
from mqproof.fuzz.deferred.observations import Leadership, Timed, Trail, Transaction, trails, visible
from mqproof.fuzz.target import Finding
from mqproof.impl.client.model import Outcome, Refused, Sent
from mqproof.impl.remoting.message import UNIQUE_KEY, StoredMessage
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.config import FlushMode
from mqproof.spec.events import Event, Kind

_TIMEOUT_MS: Final = 6000
"""The immunity time of a half message: `transactionTimeOut` of every release."""
_OBSERVER: Final = "observer"


class Witness:
    """Collects the observations; `found` is called with each violation that is detected during the run."""

    def __init__(self, cluster: Cluster, checked: Counter[str], found: Callable[[Finding], None]) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.timed: dict[str, Timed] = {}
        self.clocks_agree = True
        self.losses = 0
        """How often a crash may have lost messages that were answered SEND_OK."""
        self._cluster = cluster
        self._checked = checked
        self._found = found
        self._log: list[StoredMessage] = []
        self._doubtful: set[str] = set()
        """Unique keys of timed messages whose final may have been stored, although its put failed."""
        self._clock = cluster.add_machine(_OBSERVER).clock
        cluster.on_event = self._heard

    @property
    def now_ms(self) -> int:
        """The time, by a clock that is never changed."""
        return self._clock.now_us() // 1000

    def clock_was_set(self) -> None:
        """Record that the clock of a machine was changed."""
        self.clocks_agree = False

    def leadership(self, address: Address) -> Leadership | None:
        """Return the broker process that answers at the address now."""
        cluster = self._cluster
        for node in cluster.brokers:
            if cluster.machines[node].host == address.host:
                term = cluster.group_store(node).term if cluster.setup.elected else 0
                return Leadership(node, cluster.machines[node].life, term)
        return None

    # -- producers

    def half_is_answered(self, one: Transaction, outcome: Outcome, losses: int) -> None:
        """Record the answer to a half message; `losses` is the number of losses when it was sent."""
        if isinstance(outcome, Sent):
            one.half = outcome
            one.is_promised = outcome.status == "SEND_OK" and losses == self.losses

    def end_is_answered(self, one: Transaction, end: End, by: Leadership | None, losses: int) -> None:
        """Record that an end was answered SUCCESS; `by` is the broker, if it is the one that was asked."""
        if end is End.COMMIT:
            one.is_committed = losses == self.losses
            one.is_committed_later |= by is not None and by == one.rolled_back_by
        elif one.rolled_back_by is None:
            one.rolled_back_by = by

    def timed_is_answered(self, one: Timed, outcome: Outcome, delay_s: float, losses: int) -> None:
        """Record the answer to a message with a delay."""
        status = outcome.status if isinstance(outcome, Sent | Refused) else ""
        one.latest_due_ms = max(one.due_ms, self.now_ms + round(1000 * delay_s))
        one.is_promised = status == "SEND_OK" and losses == self.losses
        if not one.has_level:
            self._try(lambda: judge.delay_bounded(one.name, delay_s, status, self._checked))

    def recall_is_answered(self, one: Timed, losses: int) -> None:
        """Record that a recall succeeded."""
        one.is_recalled = losses == self.losses

    # -- brokers

    def dies(self, node: str, how: BrokerEnd) -> None:
        """Record that a broker is about to end in the given way."""
        setup = self._cluster.setup
        loses = how in (BrokerEnd.OS_CRASH, BrokerEnd.POWER_LOSS)
        if loses and node == MASTER and setup.flush is FlushMode.ASYNC_FLUSH and not setup.elected:
            self.losses += 1
            for one in self.transactions.values():
                one.is_promised = one.is_committed = False
            for timed in self.timed.values():
                timed.is_promised = timed.is_recalled = False
        self.look()

    def look(self) -> list[StoredMessage]:
        """Read the log of the master, if there is one, and judge it."""
        master = self._cluster.master
        if master is not None:
            log = list(self._cluster.log(master))
            first = log[0].commit_offset if log else 0
            self._log = [*(stored for stored in self._log if stored.commit_offset < first), *log]
            self._try(self._judge)
        return self._log

    def trails(self) -> dict[str, Trail]:
        """Return the records of half messages in the log of the master."""
        return trails(self.look())

    def seen(self) -> dict[str, list[StoredMessage]]:
        """Return the visible messages by name."""
        return visible(self.look())

    def _judge(self) -> None:
        found, seen = trails(self._log), visible(self._log)
        checked = self._checked
        judge.transaction_atomic(self.transactions, found, checked, is_over=False)
        judge.committed_once(self.transactions, found, checked)
        judge.ends_once(self.transactions, found, checked)
        judge.recall_holds(self.timed, seen, checked)
        judge.timer_once(self.timed, seen, self._doubtful, checked)
        if self.clocks_agree:
            judge.not_early(self.timed, seen, checked)

    def _heard(self, event: Event) -> None:
        if event.kind is Kind.RETRY and event.msg_id:
            self._doubtful.add(event.msg_id)
        elif event.kind is Kind.CHECK:
            self._try(lambda: self._judge_check(event))

    def _judge_check(self, event: Event) -> None:
        for name, trail in trails(self._cluster.log(event.node)).items():
            half = trail.half
            if half is None or half.message.properties.get(UNIQUE_KEY) != event.msg_id:
                continue
            judge.not_checked_again(name, trail, self._checked)
            if self.clocks_agree:
                immunity_ms = min(_TIMEOUT_MS, self._cluster.setup.store.file_reserved_ms // 2)
                judge.checked_while_open(name, trail, event.ts // 1000, immunity_ms, self._checked)
            return
        judge.checked_while_open(str(event.msg_id), Trail(), 0, 0, self._checked)

    def _try(self, check: Callable[[], None]) -> None:
        try:
            check()
        except Finding as finding:
            self._found(finding)
