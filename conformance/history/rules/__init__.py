"""The anomalies that clients can observe: one function for each, from a record to a finding.

`RULES` lists them by the ids of the anomaly catalogue in docs/explanation/conformance/histories.md;
the audit uses the same names.
`ELSEWHERE` explains for every other row of that catalogue where it is covered, or why it is not.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules import (
    groups,
    linear,
    loss,
    offsets,
    order,
    places,
    redelivery,
    service,
)


class Key(StrEnum):
    """What a rule compares: operations of different keys may be judged apart, in parts of a history."""

    QUEUE = "queue"
    """The operations on one queue, with all sends of the messages that were read from it."""
    MESSAGE = "message"
    """The sends and reads of one message, by its id."""
    OFFSET_ID = "offset id"
    """The places that were named by one offset id."""
    REQUEST = "request"
    """Assignments, and requests that failed: few, so that they are judged together."""


class Rule(NamedTuple):
    """One anomaly.

    `by_absence`: the rule depends on something absent, so it is `unknown` if lines are missing.
    """

    id: str
    name: str
    invariant: str
    """Catalogue id of the invariant that the anomaly violates."""
    check: Callable[[Record], Finding]
    by_absence: bool = True
    key: Key = Key.QUEUE


_SEEN: Final = False
"""The rule depends only on lines that are present in the history."""

RULES: Final = (
    Rule("A01", "lost-write", "DELIV-1", loss.lost_write),
    Rule("A02", "unseen", "DELIV-1", loss.unseen),
    Rule("A03", "lost after drain", "DELIV-1", loss.lost_after_drain),
    Rule("A04", "phantom", "DELIV-2", places.phantom, key=Key.MESSAGE),
    Rule("A06", "duplicate-offset", "DELIV-3", places.duplicate_offset, key=Key.MESSAGE),
    Rule("A07", "duplicate-delivery", "DELIV-3", order.duplicate_delivery),
    Rule("A08", "inconsistent-offsets", "FLUSH-4", places.inconsistent_offsets, _SEEN),
    Rule("A09", "poll-skip", "DELIV-4", order.poll_skip),
    Rule("A10", "nonmonotonic-poll", "DELIV-4", order.nonmonotonic_poll),
    Rule("A11", "nonmonotonic-send", "DELIV-4", order.nonmonotonic_send, _SEEN),
    Rule("A12", "int-send-skip", "DELIV-4", order.torn_batch, _SEEN),
    Rule("A13", "out-of-order dequeue", "DELIV-4", order.key_order),
    Rule("A14", "stale", "DELIV-4", loss.stale, _SEEN),
    Rule("A15", "realtime-lag", "DELIV-12", loss.realtime_lag, _SEEN),
    Rule("C01", "cq-offset-collision", "FLUSH-4", places.offset_collision, _SEEN),
    Rule("C02", "acked-then-truncated", "DELIV-1", loss.acked_then_truncated),
    Rule("C03", "resurrected tail", "FLUSH-5", loss.resurrected, _SEEN),
    Rule("C04.1", "cq-hole", "FLUSH-4", order.queue_hole),
    Rule("C04.2", "cq-order", "FLUSH-3", places.misplaced, _SEEN),
    Rule("C05", "replica divergence", "REPL-2", places.replica_divergence, _SEEN),
    Rule("C06", "offset-regression", "DELIV-5", offsets.offset_regression),
    Rule("C07", "offset-jump-to-min", "DELIV-5", offsets.offset_to_minimum, _SEEN),
    Rule("C08", "offset-ahead", "DELIV-1", offsets.offset_ahead),
    Rule("C09", "queue double-owned", "DELIV-6", groups.double_owned, key=Key.REQUEST),
    Rule("C10.1", "orderly-lock breach", "DELIV-13", groups.overlapping),
    Rule("C10.2", "head-block", "DELIV-12", groups.head_block),
    Rule("C11", "POP invisibility breach", "DELIV-3", redelivery.invisibility),
    Rule("C12", "timer", "DELIV-8", redelivery.timer, key=Key.MESSAGE),
    Rule("C13", "retry/DLQ breach", "DELIV-7", redelivery.retry_and_dead_letter, key=Key.MESSAGE),
    Rule("C14", "filter", "DELIV-10", order.filtered, _SEEN),
    Rule("C15", "broadcast gap", "DELIV-11", order.broadcast_gap),
    Rule("C16", "msgId anomalies", "DELIV-2", places.message_ids, _SEEN, Key.MESSAGE),
    Rule("C17", "body/property mutation", "FLUSH-5", places.mutated, _SEEN),
    Rule("C18", "time anomalies", "DELIV-4", places.times, _SEEN),
    Rule("C19", "ack-class breach", "REPL-3", loss.acknowledgement_class),
    Rule("C20", "metadata loss", "ROUTE-7", service.metadata_loss, key=Key.REQUEST),
    Rule("C21", "liveness", "DELIV-12", service.unavailable, key=Key.REQUEST),
    Rule("L01", "queue linearizability", "DELIV-4", linear.linearizable, _SEEN),
)

OF_KEY: Final[dict[Key, dict[str, Callable[[Record], Finding]]]] = {
    key: {rule.id: rule.check for rule in RULES if rule.key is key} for key in Key
}
"""Maps each key to the rules that judge the parts of a history by it."""
# C16 has two keys: its parts are judged separately, and their findings added.
OF_KEY[Key.MESSAGE]["C16"] = places.keys
OF_KEY[Key.OFFSET_ID]["C16"] = places.offset_ids

ELSEWHERE: Final = {
    "A05": "recovered: legal; A04 counts it",
    "A16": "Unique is A07, Ordered A10, Filter C14, Resumable A09; RocketMQ has no bookmarks, no atomic"
    " groups of events, no previous values",
    "A17": "two observers with different prefixes differ at an offset that A08 or C05 reports; a hash would"
    " only show that it exists",
    "C22": "every rule: if lines are missing or invalid, held becomes unknown, and so does violated"
    " if the rule depends on absence",
    "B01": "an aborted read of a send that failed is A04; of a half message, see B05",
    "B02": "a half message that is delivered before its commit: see B05",
    "B03": "dependency cycles need transactions of several reads and writes; RocketMQ's have writes only, and"
    " L01 decides whether one queue's operations have an order",
    "B04": "a partially stored batch is A12; there are no transactions of several messages",
    "B05": "histories have no operation for half messages, and our broker refuses them",
    "B06": "clients do not read before they write, so no update is lost; topics and offsets: C20, C06 to C08",
}
"""Rows of the catalogue of anomalies that have no rule of their own."""

NOT_SEEN: Final = {
    "C04": "a record that was never dispatched is visible only in the store: mqproof audit run --store",
    "C05": "bytes, epochs and confirmed offsets of replicas: mqproof trace-check and conform check them",
    "C09": "consumption by a member that does not own the queue: no client knows the queues of others",
    "C14": "SQL92 expressions: histories have no properties except the tag",
    "C17": "store to store, sysFlag and compression: a client sees only the resulting body",
}
"""Parts of rows that a client cannot observe."""

__all__ = ["ELSEWHERE", "NOT_SEEN", "OF_KEY", "RULES", "Key", "Rule"]
