"""Verifies the certificates of C16, C17 and C18: ids, values and times of messages.

python -m mqproof.conformance.history.value_verifier HISTORY CERTIFICATES
"""

import sys
from collections import defaultdict
from typing import Any

from mqproof.conformance.history.verification import Facts, History, main


def message_ids(history: History) -> Facts:
    """C16: keys of two messages, and offset ids of two places."""
    values, answered, places = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for op in history.ops:
        for message in op.sent:
            value = op.asked.get("topic", ""), message.get("body", "")
            if values.setdefault(message["id"], value) != value:
                yield (message["id"],), []
    for op, number, _ in history.placed:
        if (name := op.answered.get("offset_id")) and not number:
            first = answered.setdefault(name, op)
            if (first.queue, first.offset) != (op.queue, op.offset):
                reasons = history.losses(first.answered["status"], first.end, op.end)
                answered[name] = op if reasons else first
                yield (name,), reasons
    for op in (each for each in history.reads if each.queue[0] != "%" and not each.answered.get("node")):
        for name, place in ((m.get("offset_id"), (op.queue, m["offset"])) for m in op.read):
            sent: Any = answered.get(name)
            is_other = sent and (sent.queue, sent.offset) != place
            if name and (
                places.setdefault(name, place) != place
                or (is_other and not history.losses(sent.answered["status"], sent.end, op.at))
            ):
                yield (name,), []


def mutated(history: History) -> Facts:
    """C17: messages with another body, tag or key than the one that was sent."""
    sent, bodies = dict[str, Any](), defaultdict[str, set[str]](set)
    for message in (each for op in history.ops for each in op.sent):
        sent[message["id"]] = message
        bodies[message["id"]].add(message.get("body", ""))
    for op in history.reads:
        for message in op.read:
            was = sent.get(message["id"], {})
            if message.get("body") and was.get("body") and len(bodies[message["id"]]) == 1:
                if message["body"] != was["body"]:
                    yield (message["id"], op.queue, str(message["offset"])), []
                for name in ("tag", "key"):
                    if was.get(name) and message.get(name) and was[name] != message[name]:
                        yield (message["id"], op.queue), []


def times(history: History) -> Facts:
    """C18: messages stored before an earlier one of their queue, or before their birth."""
    skew, stored = history.setup.get("skew_ms", 0) * 1_000_000, dict[tuple[str, int], Any]()
    latest = defaultdict[str, int](int)
    for op in history.reads:
        for message in op.read:
            if message.get("stored"):
                stored.setdefault((op.queue, message["offset"]), message)
    for (queue, offset), message in sorted(stored.items(), key=lambda item: item[0]):
        at = message["stored"]
        if at < latest[queue] - skew or message.get("born", 0) > at + skew:
            yield (message["id"], queue, str(offset)), []
        latest[queue] = max(latest[queue], at)


RULES = {"C16": message_ids, "C17": mutated, "C18": times}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
