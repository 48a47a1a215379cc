"""Records the events of name servers and producers, and the requests and replies, of a simulated cluster."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from mqproof.conformance.hosts.simulated import NAME_SERVERS, Cluster
from mqproof.fuzz.routes import judge
from mqproof.fuzz.routes.judge import Attempt
from mqproof.fuzz.target import Finding
from mqproof.impl.client.connection.session import Session
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event, Kind

_SLACK_S: Final = 2.5
"""Two looks at the name servers, and the time of a request."""
_FAILED: Final = ("unknown", "NOT_CONNECTED")


class Witness:
    """Collects the observations; `found` is called with each violation."""

    def __init__(
        self,
        cluster: Cluster,
        topics: tuple[str, ...],
        checked: Counter[str],
        found: Callable[[Finding], None],
    ) -> None:
        self.received: set[str] = set()
        """The correlation ids of the replies that clients received."""
        self.requesters: dict[str, str] = {}
        """Maps the correlation id of a request that a consumer saw to the client that sent it."""
        self._cluster = cluster
        self._topics = topics
        self._checked = checked
        self._found = found
        self._expiry_s = cluster.setup.broker_expiry_ms / 1000
        self._contacts: dict[tuple[str, str], float] = {}
        """Maps name server and broker address to the time of the last registration or heartbeat."""
        self._disturbed_s: dict[str, float] = {}
        """When a name server was paused or down last."""
        self._last: dict[tuple[str, str], Attempt] = {}
        """Maps producer and broker to the last attempt."""
        self._with_strategy: set[str] = set()
        """The producers that avoid slow brokers."""
        self._began_s: dict[tuple[str, str, int | None], float] = {}
        self._brokers: dict[tuple[str, str], str] = {}
        """Maps producer and message to the broker of the last attempt."""
        cluster.on_event = self._heard

    @property
    def now_s(self) -> float:
        return self._cluster.now_s

    def check(self, work: Callable[[], None]) -> None:
        """Run a check, and report its finding."""
        try:
            work()
        except Finding as finding:
            self._found(finding)

    # -- name servers

    def look(self) -> None:
        """Judge the tables of all name servers."""
        for server in NAME_SERVERS:
            if server not in self._cluster.name_servers or self._cluster.is_paused(server):
                self._disturbed_s[server] = self.now_s
            else:
                self.check(partial(self._judge_tables, server))

    def _judge_tables(self, server: str) -> None:
        table = self._cluster.name_servers[server].table
        judge.tables_agree(server, table, self._topics, self._checked)
        most_s = self._expiry_s + self._cluster.setup.scan_interval_ms / 1000 + _SLACK_S
        if self.now_s - self._disturbed_s.get(server, 0.0) < most_s:
            return
        for live in table.living():
            silent_s = self.now_s - self._contacts.get((server, live.key.address), 0.0)
            judge.dead_broker_forgotten(server, live.key.address, silent_s, most_s, self._checked)

    def _heard(self, event: Event) -> None:
        if event.node not in NAME_SERVERS:
            return
        address = event.attrs.get("address", "")
        if event.kind in (Kind.REGISTER, Kind.HEARTBEAT):
            self._contacts[event.node, address] = self.now_s
        elif event.kind is Kind.EXPIRE and event.attrs.get("reason") == "silent":
            silent_s = self.now_s - self._contacts.get((event.node, address), -self._expiry_s)
            self.check(
                lambda: judge.live_broker_kept(event.node, address, silent_s, self._expiry_s, self._checked)
            )

    # -- producers

    def events_of(self, client: str, session: Session, *, has_strategy: bool) -> EventLog:
        """Return the event log of a producer; its events are judged as they happen."""
        if has_strategy:
            self._with_strategy.add(client)
        return EventLog(lambda event: self._sent(client, session, event), client, session.runtime.clock)

    def _sent(self, client: str, session: Session, event: Event) -> None:
        broker, name = event.attrs.get("broker", ""), event.msg_id or ""
        at = client, name, event.attempt
        if event.kind is Kind.SEND:
            self._began_s[at] = self.now_s
            self.check(lambda: self._judge_send(client, session, event, broker))
            self._brokers[client, name] = broker
        elif event.kind in (Kind.SEND_ACK, Kind.SEND_FAIL) and at in self._began_s:
            rest = judge.rests(
                self.now_s - self._began_s[at],
                is_stored=event.kind is Kind.SEND_ACK,
                is_failure=event.status in _FAILED,
            )
            self._last[client, broker] = Attempt(self.now_s, *rest)

    def _judge_send(self, client: str, session: Session, event: Event, broker: str) -> None:
        allowed = judge.writable(session.routes.known(event.topic or ""))
        judge.master_only_writes(broker, allowed, self._checked)
        last = self._brokers.get((client, event.msg_id or ""))
        if event.attempt is not None and event.attempt > 1 and last is not None:
            judge.retry_avoids_last_broker(broker, last, allowed, self._checked)
        mine = {name: one for (who, name), one in self._last.items() if who == client and name in allowed}
        if event.attempt == 1 and client in self._with_strategy:
            judge.faulty_broker_rested(broker, allowed, mine, self.now_s, self._checked)

    # -- replies

    def listen(self, session: Session) -> None:
        """Record the replies that the client receives."""
        replies = session.replies
        is_waited_for = replies.is_waited_for

        def received(correlation_id: str) -> bool:
            self.received.add(correlation_id)
            if (requester := self.requesters.get(correlation_id)) is not None:
                self.check(lambda: judge.pushed_to_its_requester(requester, session.client_id, self._checked))
            return is_waited_for(correlation_id)

        replies.is_waited_for = received  # type: ignore[method-assign]

    def reply_is_confirmed(self, correlation_id: str) -> None:
        """Record that the sender of a reply received SUCCESS."""
        self.check(lambda: judge.reply_confirmed(correlation_id, self.received, self._checked))
