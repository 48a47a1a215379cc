"""An event log of ledgers, name servers, replication and retries, with known anomalies.

Tests of the checks and of the checks' mutants use it in addition to the generated log. It does not change
that log's traffic: it has its own nodes, topics and groups. Each scenario has one or two legal variants,
described in comments, which no check may report as violations.
"""

from collections import Counter
from typing import Any, Final

from mqproof.spec.events import Kind

_STEP_US: Final = 1_000_000
"""One second between events: far more than the clock skew that checks allow."""
_START_US: Final = 1_780_000_000_000_000

BROADCAST: Final = ("news",)
"""The broadcast groups: every member receives every message."""

ORDERLY: Final = ("lined",)
"""A group that consumes in order and does not report it."""

Row = dict[str, Any]


class Script:
    """Events in time order, numbered per node, and the violations that an audit must find in them."""

    def __init__(self, start_us: int = _START_US) -> None:
        self.rows: list[Row] = []
        self.truth: list[Row] = []
        self.now_us = start_us
        self._next: Counter[str] = Counter()

    def emit(self, node: str, kind: Kind, attrs: dict[str, Any] | None = None, **fields: Any) -> "Script":
        seq, self._next[node] = self._next[node], self._next[node] + 1
        texts = {name: str(value) for name, value in (attrs or {}).items()}
        self.rows.append(
            {"ts": self.now_us, "seq": seq, "node": node, "kind": str(kind), "attrs": texts, **fields}
        )
        return self.wait(_STEP_US)

    def subscribes(self, node: str, group: str, topic: str, expression: str = "*") -> "Script":
        """Emit the subscription of a member."""
        return self.emit(
            node, Kind.SUBSCRIBE, {"expression": expression}, topic=topic, group=group, client=node
        )

    def wait(self, microseconds: int) -> "Script":
        self.now_us += microseconds
        return self

    def expect(self, invariant: str, rule: str, **key: Any) -> "Script":
        empty = dict.fromkeys(("broker", "topic", "queue_id", "queue_offset", "msg_id", "group"))
        self.truth.append({"anomaly": rule, "invariant": invariant, "rule": rule} | empty | key)
        return self


def events() -> Script:
    """Return all scenarios."""
    script = Script()
    _correct_ledger(script)
    _ledger_with_two_leaders(script)
    _losing_ledger(script)
    _acknowledging_ledger(script)
    _name_server(script)
    _replicas(script)
    _delayed(script)
    _delayed_twice(script)
    _delayed_without_answer(script)
    _delayed_copies(script)
    _failing(script)
    _copied(script)
    _transactions(script)
    _recalled(script)
    _owners(script)
    _delivered_again(script)
    _retries(script)
    _crashes(script)
    _offsets(script)
    _ids(script)
    _broadcast(script)
    _orderly(script)
    _filtered(script)
    _filtered_by_sql(script)
    _dropping(script)
    _threaded(script)
    _repeated(script)
    return script


# --- ledgers


class _Member:
    """Emits the events of one member of a ledger."""

    def __init__(self, script: Script, ledger: str, name: str, members: str = "n0,n1,n2") -> None:
        self.node, self._script, self._members = f"{ledger}-{name}", script, members

    def starts(self, term: int = 0, index: int = -1, voted_for: str = "") -> "_Member":
        attrs = {"index": index, "end_term": term, "voted_for": voted_for, "members": self._members}
        return self._emit(Kind.RECOVER, attrs, term=term)

    def votes(self, term: int, voted_for: str) -> "_Member":
        return self._emit(Kind.VOTE, {"voted_for": voted_for}, term=term, status="DURABLE")

    def leads(self, term: int) -> "_Member":
        return self._emit(Kind.BECOME_LEADER, term=term)

    def follows(self, term: int, leader: str) -> "_Member":
        return self._emit(Kind.HEARTBEAT, {"leader": leader}, term=term)

    def writes(self, index: int, term: int, at: int | None = None) -> "_Member":
        at = 100 * index if at is None else at
        return self._emit(Kind.RAFT_APPEND, {"index": index, "magic": 1}, term=term, commit_offset=at)

    def commits(self, index: int) -> "_Member":
        return self._emit(Kind.RAFT_COMMIT, {"index": index})

    def cuts(self, index: int) -> "_Member":
        return self._emit(Kind.TRUNCATE, {"index": index})

    def _emit(self, kind: Kind, attrs: dict[str, Any] | None = None, **fields: Any) -> "_Member":
        self._script.emit(self.node, kind, attrs, **fields)
        return self


def _group(script: Script, ledger: str) -> tuple[_Member, _Member, _Member]:
    n0, n1, n2 = (_Member(script, ledger, f"n{i}") for i in range(3))
    return n0.starts(), n1.starts(), n2.starts()


def _correct_ledger(script: Script) -> None:
    """Two elections, the replacement of an uncommitted entry, and a restart.

    Members of another ledger have the same names.
    """
    n0, n1, n2 = _group(script, "calm")
    n0.votes(1, "n0").leads(1).writes(0, 1).writes(1, 1)
    n1.votes(1, "n0").follows(1, "n0").writes(0, 1)
    n0.commits(0)
    n1.commits(0)
    n2.writes(0, 1).votes(2, "n2").leads(2).writes(1, 2, at=100).writes(2, 2)
    # Entry 1 of term 1 was not committed: it may be truncated, also by its leader once that one no longer
    # leads.
    n0.votes(2, "n2").follows(2, "n2").cuts(0).writes(1, 2).writes(2, 2)
    n2.commits(2)
    n0.commits(2)
    # It restarts with its durable vote, and receives the committed index again.
    n0.starts(term=2, index=2, voted_for="n2").follows(2, "n2").commits(0).commits(2)
    n0.votes(3, "n0").leads(3)
    # Its log begins in the middle of its life: its earlier entries are unknown.
    late = _Member(script, "calm", "n3", "n0,n1,n2,n3")
    late.writes(3, 3).leads(4).commits(3)


def _ledger_with_two_leaders(script: Script) -> None:
    n0, n1, n2 = _group(script, "torn")
    n0.votes(1, "n0").leads(1)
    n1.votes(1, "n1").leads(1)
    script.expect("RAFT-1", "two-leaders", broker="torn-n0")
    # It lost its vote in a restart, and then its term.
    n2.votes(1, "n0").starts(term=1).votes(1, "n1")
    script.expect("RAFT-6", "voted-twice", broker="torn-n2")
    n2.votes(4, "").votes(3, "")
    script.expect("RAFT-6", "term-goes-back", broker="torn-n2")
    # One index and term at two places in the file; and entries after ones of different terms.
    n0.writes(0, 1).writes(1, 1)
    n1.writes(0, 1).writes(1, 1, at=130)
    script.expect("RAFT-3", "divergent-entry", broker="torn-n0", queue_offset=1)
    n0.writes(2, 1).writes(3, 4)
    n1.writes(2, 2).writes(3, 4)
    script.expect("RAFT-3", "divergent-entry", broker="torn-n0", queue_offset=3)
    n0.cuts(2)
    script.expect("RAFT-2", "leader-cuts", broker="torn-n0", queue_offset=2)


def _losing_ledger(script: Script) -> None:
    n0, n1, n2 = _group(script, "loss")
    n2.leads(1).writes(0, 1).writes(1, 1)
    n0.follows(1, "n2").writes(0, 1).leads(2).writes(1, 2)
    n1.follows(2, "n0").writes(0, 1).writes(1, 2)
    n0.commits(1)
    # Its entry 1 differs from the committed one.
    n2.leads(3)
    script.expect("RAFT-4", "committed-entry-missing", broker="loss-n2", queue_offset=1)
    n2.commits(1)
    script.expect("RAFT-5", "committed-entry-changed", broker="loss-n2", queue_offset=1)
    n1.commits(1).follows(3, "n2").cuts(0)
    script.expect("RAFT-5", "committed-entry-cut", broker="loss-n1", queue_offset=0)
    n1.commits(0)
    script.expect("RAFT-5", "commit-goes-back", broker="loss-n1", queue_offset=0)


def _acknowledging_ledger(script: Script) -> None:
    """A leader acknowledges messages; each is 48 bytes after the beginning of its entry."""
    n0 = _Member(script, "prompt", "n0")
    place = {"topic": "prompt", "queue_id": 0}

    def acked(number: int, is_early: bool = False, **attrs: Any) -> None:
        stored = place | {"queue_offset": number, "msg_id": f"prompt_{number}"}
        where = {} if attrs else {"commit_offset": 100 * number + 48}
        script.emit(n0.node, Kind.SEND_ACK, attrs, status="SEND_OK", **stored, **where)
        if is_early:
            script.expect("REPL-3", "ok-before-commit", broker=n0.node, **stored)

    n0.leads(1).writes(0, 1).writes(1, 1).writes(2, 1)
    # Its log begins in the middle of its life: its earlier reports are unknown.
    acked(0)
    n0.commits(0)
    acked(0)
    acked(1, is_early=True)
    acked(2, is_early=True, index=2)
    n0.commits(2)
    acked(1)
    acked(2, index=2)
    n0.starts(term=1, index=2).leads(2).writes(3, 2)
    acked(3, is_early=True)
    n0.commits(3)
    # It was acknowledged at the place of an entry that was truncated.
    n0.writes(4, 2, at=400).follows(3, "n1").cuts(3).writes(4, 3, at=400).leads(4).commits(4)
    acked(4)


# --- routes


def _name_server(script: Script) -> None:
    """The name server allows 120 s of silence and scans every 10 s."""
    node = "names"

    def received(kind: Kind, name: str, broker_id: int | None = None, address: str = "", **more: Any) -> None:
        attrs = {"broker": name, "address": address or f"{name}:10911", **more}
        script.emit(node, kind, attrs | ({} if broker_id is None else {"id": broker_id}))

    def routed(brokers: str, writable: str) -> None:
        script.emit(node, Kind.ROUTE, {"brokers": brokers, "writable": writable}, topic="routed")

    # Registrations before its start are forgotten and not judged.
    received(Kind.REGISTER, "old", 0)
    routed("older:0", "older")
    script.emit(node, Kind.RECOVER, {"expiry_ms": 120_000, "scan_interval_ms": 10_000})
    for name in ("kept", "moved", "hasty", "quick"):
        own: dict[str, Any] = {"expiry_ms": 5000} if name == "quick" else {}
        received(Kind.REGISTER, name, 0, **own)
    routed("hasty:0,kept:0,moved:0", "hasty,kept,moved")
    # The broker returned at another address, and the old one is dropped.
    received(Kind.REGISTER, "moved", 0, "moved:20911")
    received(Kind.EXPIRE, "moved", None, "moved:10911", reason="connection closed")
    routed("moved:0", "moved")
    # The broker itself requested an expiry of five seconds.
    script.wait(5 * _STEP_US)
    received(Kind.EXPIRE, "quick", reason="silent")
    received(Kind.EXPIRE, "hasty", reason="silent")
    script.expect("ROUTE-2", "live-broker-evicted", broker="hasty:0")
    routed("hasty:0,kept:0", "hasty,kept")
    routed("hasty:0,kept:0", "hasty,kept")
    script.expect("ROUTE-1", "route-to-dropped-broker", broker="hasty:0")
    routed("kept:0", "gone,kept")
    script.expect("ROUTE-1", "queue-without-broker", broker="gone", topic="routed")
    script.wait(100 * _STEP_US)
    received(Kind.HEARTBEAT, "kept")
    script.wait(100 * _STEP_US)
    routed("kept:0,moved:0", "kept,moved")
    script.expect("ROUTE-3", "route-to-dead-broker", broker="moved:0")
    received(Kind.EXPIRE, "moved", None, "moved:20911", reason="silent")
    received(Kind.UNREGISTER, "kept")
    routed("", "")
    # The broker closed its connection and was dropped at once.
    received(Kind.REGISTER, "brief", 0)
    received(Kind.EXPIRE, "brief", reason="connection closed")
    received(Kind.REGISTER, "known", 0)
    routed("known:0", "known")
    # A name server that restarts knows no broker.
    script.emit(node, Kind.RECOVER, {"expiry_ms": 120_000, "scan_interval_ms": 10_000})
    routed("known:0", "known")
    script.expect("ROUTE-1", "route-to-dropped-broker", broker="known:0")


def _retries(script: Script) -> None:
    """Sends that are retried, at another broker if there is one."""
    node, seqs = "sender", iter(range(100))

    def tried(msg_id: str, *brokers: str) -> None:
        for attempt, broker in enumerate(brokers, 1):
            script.emit(node, Kind.SEND, {"broker": broker}, msg_id=msg_id, topic="tried", attempt=attempt)
            if attempt < len(brokers):
                fields: Row = {"msg_id": msg_id, "topic": "tried", "status": "unknown", "attempt": attempt}
                script.emit(node, Kind.SEND_FAIL, {"broker": broker}, **fields)

    # No other broker is known yet.
    tried("r_first", "broker-p", "broker-p")
    for broker in ("broker-p", "broker-q"):
        tried(f"r_{next(seqs)}", broker)
    tried("r_elsewhere", "broker-p", "broker-q")
    tried("r_stubborn", "broker-p", "broker-p")
    script.expect("ROUTE-5", "same-broker-again", broker="broker-p", topic="tried", msg_id="r_stubborn")
    for broker in ("broker-p", "broker-q"):
        tried(f"r_{next(seqs)}", broker)


# --- replication


def _replicas(script: Script) -> None:
    """A synchronous master, an asynchronous one, and one that reports only its flushes."""
    place = {"topic": "copied", "queue_id": 0}

    def acked(node: str, number: int, status: str = "SEND_OK", **attrs: Any) -> None:
        stored = place | {"queue_offset": number, "commit_offset": 100 * number, "status": status}
        script.emit(node, Kind.SEND_ACK, attrs, msg_id=f"{node}_{number}", **stored)

    def acknowledged(node: str, offset: int, role: str) -> None:
        script.emit(node, Kind.HA_ACK, {"slave": "10.0.0.9:1", "role": role}, commit_offset=offset)

    def starts(node: str, offset: int, flush: str) -> None:
        script.emit(node, Kind.RECOVER, {"flush_disk_type": flush}, commit_offset=offset)

    starts("sync", 0, "ASYNC_FLUSH")
    acknowledged("sync", 100, "SYNC_MASTER")
    acked("sync", 0)
    acked("sync", 1, "FLUSH_SLAVE_TIMEOUT")
    acked("sync", 1, wait="false")
    acked("sync", 2)
    script.expect("REPL-1", "acked-before-slave", broker="sync", queue_offset=2, msg_id="sync_2", **place)
    # After a restart, slave reports from the earlier life do not count.
    acknowledged("sync", 900, "SYNC_MASTER")
    starts("sync", 300, "ASYNC_FLUSH")
    acked("sync", 3)
    script.expect("REPL-1", "acked-before-slave", broker="sync", queue_offset=3, msg_id="sync_3", **place)
    # No slave ever connected.
    script.emit(
        "lonely", Kind.RECOVER, {"flush_disk_type": "ASYNC_FLUSH", "role": "SYNC_MASTER"}, commit_offset=0
    )
    acked("lonely", 0, "SLAVE_NOT_AVAILABLE")
    acked("lonely", 1)
    script.expect("REPL-1", "acked-before-slave", broker="lonely", queue_offset=1, msg_id="lonely_1", **place)
    # Not a synchronous master, and a master whose log begins in the middle of a life.
    acknowledged("lazy", 0, "ASYNC_MASTER")
    acked("lazy", 7)
    acked("late", 7)
    acknowledged("late", 800, "SYNC_MASTER")
    starts("disk", 100, "SYNC_FLUSH")
    acked("disk", 0)
    acked("disk", 1, "FLUSH_DISK_TIMEOUT")
    acked("disk", 1, wait="false")
    script.emit("disk", Kind.FLUSH, {"file": "queues"}, commit_offset=500)
    acked("disk", 2)
    script.expect("REPL-3", "ok-before-flush", broker="disk", queue_offset=2, msg_id="disk_2", **place)
    script.emit("disk", Kind.FLUSH, {"file": "log"}, commit_offset=400)
    acked("disk", 3)


# --- consumption


def _delayed(script: Script) -> None:
    """Delayed messages; level 2 is five seconds, and a second passes between events."""
    node = "clock"

    def appended(
        msg_id: str, level: int = 0, offset: int = 0, reported_late_ms: int | None = None, topic: str = "late"
    ) -> None:
        topic, queue_id = ("SCHEDULE_TOPIC_XXXX", level - 1) if level else (topic, 0)
        attrs = {} if reported_late_ms is None else {"stored_ms": script.now_us // 1000 - reported_late_ms}
        place = {"topic": topic, "queue_id": queue_id, "queue_offset": offset, "commit_offset": 0}
        script.emit(node, Kind.APPEND, attrs, msg_id=msg_id, **place)

    def is_early(msg_id: str, offset: int) -> None:
        appended(msg_id, offset=offset)
        place = {"topic": "late", "queue_id": 0, "queue_offset": offset}
        script.expect("DELIV-8", "early", broker=node, msg_id=msg_id, **place)

    script.emit(node, Kind.RECOVER, commit_offset=0)
    appended("d_due", 2)
    script.wait(4 * _STEP_US)
    appended("d_due", offset=0)
    # A producer that tried twice delays it twice, so it is appended twice; and again after a crash.
    appended("d_twice", 1)
    appended("d_twice", 1)
    appended("d_twice", offset=1)
    appended("d_twice", offset=2)
    appended("d_twice", offset=3)
    appended("d_early", 2)
    script.wait(2 * _STEP_US)
    is_early("d_early", 4)
    # The delay starts when the record was stamped, even if its event is late.
    appended("d_reported_late", 2, reported_late_ms=4000)
    appended("d_reported_late", offset=5)
    appended("d_reported_at_once", 2, reported_late_ms=0)
    is_early("d_reported_at_once", 6)
    # Two groups retry a message that was not delayed. One retries it a third time; the other makes it a dead
    # letter.
    appended("d_tried", offset=7)
    appended("d_tried", 1)
    appended("d_tried", 2)
    appended("d_tried", topic="%RETRY%one")
    appended("d_tried", 3)
    script.wait(3 * _STEP_US)
    appended("d_tried", topic="%RETRY%two")
    appended("d_tried", topic="%DLQ%two")
    # After a crash, the broker has forgotten which message it already appended to its topic.
    appended("d_forgot", 1)
    appended("d_forgot", topic="%RETRY%one")
    appended("d_forgot", 3)
    script.emit(node, Kind.CRASH).emit(node, Kind.RECOVER, commit_offset=1000)
    appended("d_forgot", topic="%RETRY%one", offset=1)


def _delayed_twice(script: Script) -> None:
    """A broker may lose its progress on delayed messages in a crash, and only then."""
    node, topic, group = "forgetful", "later", "waiting"
    at = {"broker": node, "topic": topic, "queue_id": 0}

    def appended(msg_id: str, topic: str, offset: int) -> None:
        place = {"topic": topic, "queue_id": 0, "queue_offset": offset, "commit_offset": 0}
        script.emit(node, Kind.APPEND, None, msg_id=msg_id, **place)

    def receives(msg_id: str, offset: int) -> None:
        appended(msg_id, topic, offset)
        place = {"topic": topic, "queue_id": 0, "queue_offset": offset}
        script.emit(
            "waiter", Kind.DELIVER, {"broker": node}, msg_id=msg_id, group=group, client="waiter", **place
        )

    script.emit(node, Kind.RECOVER, commit_offset=0)
    for offset, msg_id in enumerate(("d_again", "d_doubled")):
        script.emit("writer", Kind.SEND, {"broker": node}, msg_id=msg_id, topic=topic, attempt=1)
        appended(msg_id, "SCHEDULE_TOPIC_XXXX", offset)
    receives("d_again", 0)
    script.emit(node, Kind.CRASH).emit(node, Kind.RECOVER, commit_offset=1000)
    receives("d_again", 1)
    receives("d_doubled", 2)
    receives("d_doubled", 3)
    script.expect("DELIV-3", "duplicate-offset", msg_id="d_doubled", group=group, **at)


def _delayed_without_answer(script: Script) -> None:
    """Inject delayed messages whose due copy a leader appends twice.

    The leader appends it again, or the next leader does, when the first append was not confirmed in time. The
    first copy may be in the group's log nevertheless. Members log it much later.
    """
    topic, group = "unsure", "patient"
    at = {"broker": "unsure", "topic": topic, "queue_id": 0}
    member = _Member(script, "unsure", "n0", "n0,n1")

    def appended(msg_id: str, topic: str, offset: int) -> None:
        place = {"topic": topic, "queue_id": 0, "queue_offset": offset, "commit_offset": 1000 + offset}
        script.emit(member.node, Kind.APPEND, None, msg_id=msg_id, **place)

    def receives(msg_id: str, *offsets: int) -> None:
        for offset in offsets:
            appended(msg_id, topic, offset)
        for offset in offsets:
            place = {"topic": topic, "queue_id": 0, "queue_offset": offset}
            script.emit(
                "patient-0",
                Kind.DELIVER,
                {"broker": "unsure"},
                msg_id=msg_id,
                group=group,
                client="p",
                **place,
            )

    def is_delayed(offset: int, msg_id: str) -> None:
        script.emit("writer", Kind.SEND, {"broker": "unsure"}, msg_id=msg_id, topic=topic, attempt=1)
        appended(msg_id, "SCHEDULE_TOPIC_XXXX", offset)
        script.wait(2 * _STEP_US)

    is_delayed(0, "u_led")
    member.leads(1)
    script.wait(_STEP_US)
    receives("u_led", 0, 1)
    is_delayed(1, "u_unsure")
    script.emit(member.node, Kind.RETRY, None, msg_id="u_unsure", topic=topic, queue_id=0)
    script.wait(_STEP_US)
    receives("u_unsure", 2, 3)
    is_delayed(2, "u_doubled")
    receives("u_doubled", 4, 5)
    script.expect("DELIV-3", "duplicate-offset", msg_id="u_doubled", group=group, **at)


def _delayed_copies(script: Script) -> None:
    """A follower, whose clock is ahead, copies the appends of its leader. Level 2 is five seconds."""
    place = {"topic": "copies", "queue_id": 0}
    leader, follower = _Member(script, "waits", "n0", "n0,n1"), _Member(script, "waits", "n1", "n0,n1")

    def both_append(msg_id: str, offset: int, *, waits: bool = False) -> None:
        at = {"topic": "SCHEDULE_TOPIC_XXXX", "queue_id": 1} if waits else place
        attrs = {"stored_ms": script.now_us // 1000} if waits else {}
        fields: dict[str, Any] = {
            "msg_id": msg_id,
            "queue_offset": offset,
            "commit_offset": 100 * offset,
            **at,
        }
        script.emit(leader.node, Kind.APPEND, attrs, **fields)
        script.wait(-_STEP_US - 50_000).emit(follower.node, Kind.APPEND, attrs, **fields).wait(50_000)

    leader.leads(1)
    both_append("w_due", 0, waits=True)
    script.wait(4 * _STEP_US)
    both_append("w_due", 0)
    both_append("w_early", 1, waits=True)
    script.wait(2 * _STEP_US)
    both_append("w_early", 1)
    script.expect("DELIV-8", "early", broker=follower.node, queue_offset=1, msg_id="w_early", **place)
    # The new leader does not know that it was already appended, and its follower copies that append, too.
    follower.leads(2)
    both_append("w_due", 2)


class _Reader:
    """One consumer of one queue; no other consumer reads the topic."""

    def __init__(self, script: Script, node: str, topic: str, group: str) -> None:
        self._script, self._node = script, node
        self._fields = {"topic": topic, "queue_id": 0, "group": group, "client": node}
        self._attrs = {"broker": "broker-r"}

    def emit(self, kind: Kind, msg_id: str | None, offset: int | None = None) -> "_Reader":
        self._script.emit(self._node, kind, self._attrs, msg_id=msg_id, queue_offset=offset, **self._fields)
        return self

    def receives(self, msg_id: str, offset: int) -> "_Reader":
        return self.emit(Kind.DELIVER, msg_id, offset)

    def fails(self, msg_id: str, offset: int) -> "_Reader":
        return self.emit(Kind.CONSUME_FAIL, msg_id, offset)

    def commits(self, offset: int) -> "_Reader":
        return self.emit(Kind.OFFSET_COMMIT, None, offset)


def _sent(script: Script, topic: str, *msg_ids: str) -> None:
    for offset, msg_id in enumerate(msg_ids):
        script.emit("writer", Kind.SEND, msg_id=msg_id, topic=topic, attempt=1)
        place = {"topic": topic, "queue_id": 0, "queue_offset": offset}
        attrs = {"broker": "broker-r"}
        script.emit("writer", Kind.SEND_ACK, attrs, msg_id=msg_id, status="SEND_OK", **place)


def _failing(script: Script) -> None:
    _sent(script, "failing", "f_retried", "f_again", "f_dropped", "f_dead", "f_kept", "f_after", "f_pending")
    reader = _Reader(script, "failing-0", "failing", "patient")
    place = {"broker": "broker-r", "topic": "failing", "queue_id": 0, "group": "patient"}
    reader.receives("f_retried", 0).fails("f_retried", 0).emit(Kind.RETRY, "f_retried", 0).commits(1)
    # Retried in place, as orderly consumers do.
    reader.receives("f_again", 1).fails("f_again", 1).emit(Kind.CONSUME_OK, "f_again", 1).commits(2)
    reader.receives("f_dropped", 2).fails("f_dropped", 2).commits(3)
    script.expect("DELIV-7", "failed-and-dropped", queue_offset=2, msg_id="f_dropped", **place)
    reader.receives("f_dead", 3).fails("f_dead", 3).emit(Kind.DEAD_LETTER, "f_dead", 3).commits(4)
    reader.receives("f_dead", 3)
    script.expect("DELIV-7", "dead-letter-delivered", queue_offset=3, msg_id="f_dead", **place)
    # Its consumer could not send it back, kept it, and continued with other messages.
    reader.receives("f_kept", 4).fails("f_kept", 4).receives("f_after", 5).receives("f_kept", 4)
    # Not yet committed when the log ends.
    reader.receives("f_pending", 6).fails("f_pending", 6)


def _copied(script: Script) -> None:
    """A slave records its copies; no client reads from it."""
    attrs, group = {"broker": "copied"}, "passing"
    script.subscribes("passer", group, "followed")
    for offset, msg_id in enumerate(("c_first", "c_lost", "c_last")):
        place: dict[str, Any] = {"topic": "followed", "queue_id": 0, "queue_offset": offset}
        script.emit("writer", Kind.SEND, attrs, msg_id=msg_id, topic="followed", attempt=1)
        for node in ("copied", "copied-1"):
            script.emit(node, Kind.APPEND, msg_id=msg_id, commit_offset=100 * offset, **place)
        script.emit("writer", Kind.SEND_ACK, attrs, msg_id=msg_id, status="SEND_OK", **place)
        if msg_id != "c_lost":
            script.emit("passer", Kind.DELIVER, attrs, msg_id=msg_id, group=group, client="passer", **place)
    lost: Row = {"broker": "copied", "topic": "followed", "queue_id": 0, "queue_offset": 1}
    script.expect("DELIV-1", "lost-write", msg_id="c_lost", group=group, **lost)


def _transactions(script: Script) -> None:
    def resolved(msg_id: str, *kinds: Kind) -> None:
        for kind in (Kind.HALF, *kinds):
            script.emit("broker-t", kind, msg_id=msg_id, topic="halves")

    ids = ("h_committed", "h_early", "h_aborted", "h_both", "h_gone", "h_last", "h_twice", "h_asked")
    _sent(script, "halves", *ids)
    reader = _Reader(script, "halves-0", "halves", "ledger")
    script.subscribes("halves-0", "ledger", "halves")
    resolved("h_committed", Kind.CHECK, Kind.COMMIT)
    reader.receives("h_committed", 0)
    resolved("h_early")
    reader.receives("h_early", 1)
    script.emit("broker-t", Kind.COMMIT, msg_id="h_early", topic="halves")
    script.expect("DELIV-9", "precommitted-read", topic="halves", msg_id="h_early", group="ledger")
    resolved("h_aborted", Kind.ROLLBACK)
    reader.receives("h_aborted", 2)
    script.expect("DELIV-9", "aborted-read", topic="halves", msg_id="h_aborted", group="ledger")
    resolved("h_both", Kind.COMMIT, Kind.ROLLBACK)
    reader.receives("h_both", 3)
    script.expect("DELIV-9", "committed-and-rolled-back", topic="halves", msg_id="h_both")
    script.expect("TXN-2", "ended-twice", topic="halves", msg_id="h_both", broker="broker-t")
    # Acknowledged, but due to no group.
    resolved("h_gone", Kind.ROLLBACK)
    resolved("h_last", Kind.COMMIT)
    reader.receives("h_last", 5)
    resolved("h_twice", Kind.COMMIT, Kind.COMMIT)
    reader.receives("h_twice", 6)
    resolved("h_asked", Kind.CHECK, Kind.COMMIT, Kind.CHECK)
    script.expect("TXN-4", "checked-after-end", topic="halves", msg_id="h_asked", broker="broker-t")
    reader.receives("h_asked", 7).receives("h_twice", 8)
    place: Row = {"broker": "broker-r", "topic": "halves", "msg_id": "h_twice"}
    script.expect("TXN-1", "visible-twice", **place)
    script.expect("DELIV-3", "duplicate-offset", group="ledger", queue_id=0, **place)
    # Its outcome is not recorded.
    resolved("h_open")


def _recalled(script: Script) -> None:
    """Messages that wait for a time; recalls withdraw some of them."""
    _sent(script, "timed", "t_read")
    reader = _Reader(script, "timed-0", "timed", "agenda")
    recall: Row = {"topic": "timed", "msg_id": "t_read", "status": "PUT_OK"}
    script.emit("broker-r", Kind.RECALL, **recall)
    script.wait(60 * _STEP_US)
    reader.receives("t_read", 0)
    place: Row = {"broker": "broker-r", "topic": "timed", "group": "agenda"}
    script.expect("TIMER-3", "recalled-read", msg_id="t_read", **place)


def _owners(script: Script) -> None:
    """Two members receive messages of one queue in turns, long after the last rebalance."""

    def deliver(topic: str, *members: int, wait_us: int = 60 * _STEP_US) -> None:
        _sent(script, topic, *(f"{topic}_{offset}" for offset in range(len(members))))
        for name in ("0", "1"):
            fields: Row = {"topic": topic, "group": f"{topic}s", "client": f"{topic}-{name}"}
            script.emit(f"{topic}-{name}", Kind.REBALANCE, **fields)
        script.wait(wait_us)
        for offset, member in enumerate(members):
            _Reader(script, f"{topic}-{member}", topic, f"{topic}s").receives(f"{topic}_{offset}", offset)

    deliver("owned", 0, 0, 1, 1)
    # Not every member knows of the rebalance yet.
    deliver("moving", 0, 1, 0, 1, wait_us=0)
    deliver("shared", 0, 1, 0, 1)
    place = {"broker": "broker-r", "topic": "shared", "queue_id": 0, "group": "shareds"}
    script.expect("DELIV-6", "double-owned", **place)
    # Each of them skips the offsets delivered to the other. In "shared" this is a consequence of two owners.
    place |= {"topic": "moving", "group": "movings"}
    for offset in (1, 2):
        script.expect("DELIV-4", "poll-skip", queue_offset=offset, msg_id=f"moving_{offset}", **place)


def _delivered_again(script: Script) -> None:
    """Each message is delivered twice, to one member or to two, with a rebalance before or after."""
    topic, group = "again", "agains"
    place: Row = {"broker": "broker-r", "topic": topic, "queue_id": 0}

    def deliver(offset: int, *members: int) -> None:
        for member in members:
            _Reader(script, f"again-{member}", topic, group).receives(f"g_{offset}", offset)

    def rebalances() -> None:
        script.emit("again-0", Kind.REBALANCE, topic=topic, group=group, client="again-0")

    def expect(offset: int) -> None:
        fields: Row = place | {"queue_offset": offset, "msg_id": f"g_{offset}", "group": group}
        script.expect("DELIV-3", "duplicate-delivery", **fields)

    _sent(script, topic, *(f"g_{offset}" for offset in range(4)))
    rebalances()
    # Two members may own a queue until both know the owner.
    deliver(0, 0, 1)
    script.wait(60 * _STEP_US)
    deliver(1, 0, 1)
    expect(1)
    script.wait(60 * _STEP_US)
    deliver(2, 0, 1)
    rebalances()
    # A single member knows which messages it received.
    deliver(3, 0, 0)
    expect(3)


# --- crashes, offsets, ids


def _crashes(script: Script) -> None:
    """Brokers under ASYNC_FLUSH lose their tail: one in a process crash, others with their machines."""

    def stored(node: str, msg_id: str, status: str = "SEND_OK") -> None:
        place: Row = {"msg_id": msg_id, "topic": node, "queue_id": 0, "queue_offset": 0}
        script.emit("pusher", Kind.SEND, {"broker": node}, msg_id=msg_id, topic=node, attempt=1)
        script.emit(node, Kind.APPEND, {"size": 100}, commit_offset=0, **place)
        script.emit("pusher", Kind.SEND_ACK, {"broker": node}, status=status, **place)

    def crash(node: str, *kinds: str) -> None:
        for kind in kinds:
            script.emit("chaos", Kind.CRASH, {"node": node, "kind": kind})
        script.emit(node, Kind.CRASH, {"kind": "unknown"})
        script.emit(node, Kind.RECOVER, {"flush_disk_type": "ASYNC_FLUSH"}, commit_offset=0)

    for node, kinds in (("proc", ("process",)), ("host", ("os",)), ("both", ("process", "os")), ("mute", ())):
        script.emit(node, Kind.RECOVER, {"flush_disk_type": "ASYNC_FLUSH"}, commit_offset=0)
        stored(node, f"c_{node}")
        crash(node, *kinds)
    place = {"broker": "proc", "topic": "proc", "queue_id": 0, "queue_offset": 0}
    script.expect("FLUSH-2", "acked-then-truncated", msg_id="c_proc", **place)
    # A copy at the slave does not fulfil the master's promise.
    script.emit("pair", Kind.RECOVER, {"flush_disk_type": "SYNC_FLUSH"}, commit_offset=0)
    stored("pair", "c_pair")
    copy: Row = {"msg_id": "c_pair", "topic": "pair", "queue_id": 0, "queue_offset": 0}
    script.emit("pair-1", Kind.APPEND, {"size": 100}, commit_offset=0, **copy)
    script.emit("pair", Kind.TRUNCATE, commit_offset=0)
    script.emit("pair", Kind.RECOVER, {"flush_disk_type": "SYNC_FLUSH"}, commit_offset=0)
    for invariant in ("FLUSH-1", "DELIV-1"):
        script.expect(invariant, "acked-then-truncated", broker="pair", **copy)
    # The producer was warned that the disk is late: such a loss is counted, and is not a violation.
    script.emit("slow", Kind.RECOVER, {"flush_disk_type": "SYNC_FLUSH"}, commit_offset=0)
    stored("slow", "c_weak", "FLUSH_DISK_TIMEOUT")
    crash("slow", "os")


def _offsets(script: Script) -> None:
    node = "keeper"
    place: Row = {"topic": "kept", "queue_id": 0}

    def committed(group: str, offset: int, **attrs: str) -> None:
        script.emit(node, Kind.OFFSET_COMMIT, attrs, group=group, queue_offset=offset, **place)

    for offset in range(3):
        script.emit(
            node, Kind.APPEND, msg_id=f"k_{offset}", queue_offset=offset, commit_offset=100 * offset, **place
        )
    committed("level", 3)
    committed("ahead", 4)
    script.expect("DELIV-1", "offset-ahead", broker=node, queue_offset=4, group="ahead", **place)
    committed("chosen", 9, reset="true")
    # An operator deletes groups and a topic, and their offsets begin again.
    committed("removed", 3)
    committed("kept", 3)
    action = {"action": "delete_subscriptiongroup", "address": "10.0.0.3:4711"}
    script.emit(node, Kind.ADMIN, action, group="removed")
    committed("removed", 1)
    committed("kept", 2)
    script.expect("DELIV-5", "offset-regression", broker=node, queue_offset=2, group="kept", **place)
    script.emit(node, Kind.ADMIN, action | {"action": "delete_topic_in_broker"}, topic="kept")
    committed("kept", 0)
    committed("below", -1)
    script.expect("DELIV-5", "negative-commit", broker=node, queue_offset=-1, group="below", **place)


def _ids(script: Script) -> None:
    """Two producers send the same id."""
    for node in ("twin-0", "twin-1"):
        script.emit(node, Kind.SEND, {"broker": "broker-r"}, msg_id="i_twins", topic="twins", attempt=1)
    for offset, node in enumerate(("twin-0", "twin-1")):
        place = {"topic": "twins", "queue_id": 0, "queue_offset": offset}
        attrs = {"broker": "broker-r"}
        script.emit(node, Kind.SEND_ACK, attrs, msg_id="i_twins", status="SEND_OK", **place)
        _Reader(script, "twins-0", "twins", "twins").receives("i_twins", offset)
    script.expect("DELIV-3", "msgid-reused", topic="twins", msg_id="i_twins")


def _broadcast(script: Script) -> None:
    """Both members receive all messages except one; a third member starts late."""
    ids = tuple(f"n_{offset}" for offset in range(4))
    _sent(script, "news", *ids)
    script.subscribes("news-0", "news", "news")
    for node, offsets in (("news-0", (0, 1, 2, 3)), ("news-1", (0, 2, 3)), ("news-2", (3,))):
        for offset in offsets:
            _Reader(script, node, "news", "news").receives(ids[offset], offset)
    place = {"broker": "broker-r", "topic": "news", "queue_id": 0, "queue_offset": 1}
    for invariant, rule in (("DELIV-11", "broadcast-gap"), ("DELIV-4", "poll-skip")):
        script.expect(invariant, rule, msg_id="n_1", group="news@news-1", **place)


class _OrderedGroup:
    """Two members of a group that process a topic with one queue."""

    def __init__(self, script: Script, topic: str, group: str, *, is_reported: bool = False) -> None:
        _sent(script, topic, *(f"{topic}_{offset}" for offset in range(4)))
        for name in ("0", "1") if is_reported else ():
            attrs = {"orderly": "true"}
            script.emit(f"{group}-{name}", Kind.REBALANCE, attrs, group=group, client=f"{group}-{name}")
        self._script, self._topic, self._group = script, topic, group
        self._members = [_Reader(script, f"{group}-{number}", topic, group) for number in range(2)]

    def takes(self, member: int, *offsets: int) -> "_OrderedGroup":
        for offset in offsets:
            self._members[member].receives(f"{self._topic}_{offset}", offset)
        return self

    def ends(self, member: int, *offsets: int) -> "_OrderedGroup":
        for offset in offsets:
            self._members[member].emit(Kind.CONSUME_OK, f"{self._topic}_{offset}", offset)
        return self

    def fails(self, member: int, offset: int) -> "_OrderedGroup":
        self._members[member].fails(f"{self._topic}_{offset}", offset)
        return self

    def overlaps(self, offset: int) -> "_OrderedGroup":
        """Expect a violation: this message was delivered while another was still being processed."""
        place: Row = {"broker": "broker-r", "topic": self._topic, "queue_id": 0, "queue_offset": offset}
        msg_id = f"{self._topic}_{offset}"
        self._script.expect("DELIV-13", "orderly-overlap", msg_id=msg_id, group=self._group, **place)
        return self


def _orderly(script: Script) -> None:
    """Two members of a group that consumes in order, in separate queues, and of a group that does not."""
    # Two at once; one fails and is retried in place; then the queue changes its owner between two calls.
    line = _OrderedGroup(script, "line", "lined")
    line.takes(0, 0, 1).ends(0, 0).fails(0, 1).takes(0, 1).ends(0, 1).takes(1, 2, 3).ends(1, 2, 3)
    # A third message is delivered while the second of two is still being processed.
    lanes = _OrderedGroup(script, "lanes", "lined")
    lanes.takes(0, 0, 1).ends(0, 0).takes(0, 2).overlaps(2).ends(0, 1, 2)
    # Both members process a message.
    clash = _OrderedGroup(script, "clash", "ranked", is_reported=True)
    clash.takes(0, 0).takes(1, 1).overlaps(1).ends(1, 1).ends(0, 0)
    # A call lasts longer than its lock.
    slow = _OrderedGroup(script, "slow_line", "ranked").takes(0, 0)
    script.wait(70 * _STEP_US)
    slow.takes(1, 1).ends(1, 1).ends(0, 0)
    # A killed member: the end of its call is unknown.
    _OrderedGroup(script, "killed_line", "ranked").takes(0, 0).takes(1, 1).ends(1, 1)
    # A group that does not consume in order.
    _OrderedGroup(script, "crowd", "crowded").takes(0, 0).takes(1, 1).ends(1, 1).ends(0, 0)


# --- filters

_TAGGED: Final = ("A", "B", "A", "B", "A", "C", "", "B", "A", "C", "B", "A")
"""The tags of consecutive messages of one queue; one message has none."""


def _filtered(script: Script) -> None:
    """A group that selects by tag and later changes its subscription, and a group that reads everything."""
    topic, group = "tagged", "choosing"
    place: Row = {"broker": "broker-r", "topic": topic, "queue_id": 0}
    script.subscribes("reader", "reading", topic).subscribes("chooser", group, topic, "A || C")
    reader, chooser = (
        _Reader(script, "reader", topic, "reading"),
        _Reader(script, "chooser", topic, group),
    )

    def is_sent(offset: int) -> None:
        msg_id, at = f"t_{offset}", {"broker": "broker-r"}
        fields: Row = {"msg_id": msg_id, "topic": topic}
        script.emit("tagger", Kind.SEND, at, tags=_TAGGED[offset], attempt=1, **fields)
        stored = {"queue_id": 0, "queue_offset": offset, "status": "SEND_OK"}
        script.emit("tagger", Kind.SEND_ACK, at, **fields, **stored)
        reader.receives(msg_id, offset)

    def expect(invariant: str, rule: str, offset: int) -> None:
        key = place | {"queue_offset": offset, "msg_id": f"t_{offset}", "group": group}
        script.expect(invariant, rule, **key)

    for offset in range(7):
        is_sent(offset)
    # It receives what it selects, but not message 2; message 3 it does not select.
    for offset in (0, 3, 4, 5):
        chooser.receives(f"t_{offset}", offset)
    expect("DELIV-1", "lost-write", 2)
    expect("DELIV-4", "poll-skip", 2)
    expect("DELIV-10", "not-selected", 3)
    script.wait(60 * _STEP_US)
    # The messages that were sent before the change may be delivered after it.
    is_sent(7)
    is_sent(8)
    script.subscribes("chooser", group, topic, "B")
    chooser.receives("t_8", 8)
    for offset in (9, 10, 11):
        is_sent(offset)
    chooser.receives("t_9", 9)
    expect("DELIV-10", "not-selected", 9)
    chooser.receives("t_10", 10)


_PRICES: Final = (7, 3, 8, 2, 9, 6)
"""The property `price` of consecutive messages of one queue."""


def _filtered_by_sql(script: Script) -> None:
    """A group that selects by SQL92, from messages whose properties the log has."""
    topic, group = "priced", "buying"
    place: Row = {"broker": "broker-r", "topic": topic, "queue_id": 0}
    subscription = {"type": "SQL92", "expression": "price > 5"}
    script.emit("buyer", Kind.SUBSCRIBE, subscription, topic=topic, group=group, client="buyer")
    buyer = _Reader(script, "buyer", topic, group)
    for offset, price in enumerate(_PRICES):
        fields: Row = {"msg_id": f"p_{offset}", "topic": topic}
        at = {"broker": "broker-r", "properties": f'{{"price":"{price}"}}'}
        script.emit("seller", Kind.SEND, at, tags="", attempt=1, **fields)
        stored = {"queue_id": 0, "queue_offset": offset, "status": "SEND_OK"}
        script.emit("seller", Kind.SEND_ACK, {"broker": "broker-r"}, **fields, **stored)
    # It receives what it selects, but not message 2; message 3 it does not select.
    for offset in (0, 3, 4, 5):
        buyer.receives(f"p_{offset}", offset)
    for invariant, rule, offset in (("DELIV-1", "lost-write", 2), ("DELIV-10", "not-selected", 3)):
        key = place | {"queue_offset": offset, "msg_id": f"p_{offset}", "group": group}
        script.expect(invariant, rule, **key)


def _dropping(script: Script) -> None:
    """A consumer that drops rows: long after one message was lost, and then of another one's delivery."""
    topic, group = "dropped", "dropping"
    script.subscribes("dropper", group, topic)
    dropper = _Reader(script, "dropper", topic, group)

    def is_sent(offset: int) -> None:
        fields: Row = {"msg_id": f"hid_{offset}", "topic": topic}
        script.emit("giver", Kind.SEND, {"broker": "broker-r"}, tags="", attempt=1, **fields)
        stored = {"queue_id": 0, "queue_offset": offset, "status": "SEND_OK"}
        script.emit("giver", Kind.SEND_ACK, {"broker": "broker-r"}, **fields, **stored)

    for offset in (0, 1, 2):
        is_sent(offset)
    dropper.receives("hid_0", 0).receives("hid_2", 2)
    place: Row = {"broker": "broker-r", "topic": topic, "queue_id": 0}
    script.expect("DELIV-1", "lost-write", queue_offset=1, msg_id="hid_1", group=group, **place)
    # The group has read past that message long before the gap, so the gap cannot hide its delivery.
    script.wait(600 * _STEP_US)
    for offset in (3, 4, 5):
        is_sent(offset)
    dropper.receives("hid_3", 3)
    since = script.now_us
    script.wait(_STEP_US)
    script.emit("dropper", Kind.GAP, {"since": since, "dropped": 1, "reason": "queue_full"})
    dropper.receives("hid_5", 5)


def _threaded(script: Script) -> None:
    """A consumer with several threads, which receives messages of a queue out of order."""
    topic, group = "threaded", "threading"
    attrs = {"expression": "*", "threads": 20}
    script.emit("weaver", Kind.SUBSCRIBE, attrs, topic=topic, group=group, client="weaver")
    weaver = _Reader(script, "weaver", topic, group)
    for offset in (0, 1, 2):
        fields: Row = {"msg_id": f"w_{offset}", "topic": topic}
        script.emit("giver", Kind.SEND, {"broker": "broker-r"}, tags="", attempt=1, **fields)
        stored = {"queue_id": 0, "queue_offset": offset, "status": "SEND_OK"}
        script.emit("giver", Kind.SEND_ACK, {"broker": "broker-r"}, **fields, **stored)
    weaver.receives("w_0", 0).receives("w_2", 2).receives("w_1", 1)


def _repeated(script: Script) -> None:
    """A producer whose client repeats sends without an event: one message is stored twice."""
    topic, group = "repeated", "repeating"
    script.emit("repeater", Kind.REGISTER, {"retries": 2}, client="repeater")
    script.subscribes("taker", group, topic)
    taker = _Reader(script, "taker", topic, group)
    script.emit(
        "repeater", Kind.SEND, {"broker": "broker-r"}, msg_id="again_0", topic=topic, tags="", attempt=1
    )
    stored: Row = {"msg_id": "again_0", "topic": topic, "queue_id": 0, "queue_offset": 1, "status": "SEND_OK"}
    script.emit("repeater", Kind.SEND_ACK, {"broker": "broker-r"}, **stored)
    taker.receives("again_0", 0).receives("again_0", 1)
