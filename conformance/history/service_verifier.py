"""Verifies the certificates of C20 and C21: refusals.

python -m mqproof.conformance.history.service_verifier HISTORY CERTIFICATES
"""

import sys

from mqproof.conformance.history.undisturbed import MS, interval, intervals
from mqproof.conformance.history.verification import NEVER, Facts, History, main

UNKNOWN = ("TOPIC_NOT_EXIST", "SUBSCRIPTION_NOT_EXIST", "SUBSCRIPTION_GROUP_NOT_EXIST")
NO_ROUTE = "NO_ROUTE"


def topic_of(queue: str) -> str:
    return queue.split("/")[0]


def metadata_loss(history: History) -> Facts:
    """C20: refusals of a topic that accepted a message, as if it did not exist."""
    calm, works, deleted = intervals(history), dict[str, int](), dict[str, int]()
    for op in history.ops:
        if op.f == "delete_topic":
            deleted.setdefault(op.asked["topic"], op.start)
    for op in (each for each in history.ops if each.f in ("send", "poll", "pop")):
        topic = op.asked.get("topic", "") if op.f == "send" else topic_of(op.asked.get("queue", ""))
        if op.outcome == "ok" and op.f == "send":
            works.setdefault(topic, op.end)
        elif op.outcome != "ok" and works.get(topic, NEVER) < op.start:
            # Without a route during a fault, the broker may be unavailable, not the topic.
            has_no_route = NO_ROUTE in op.error and interval(calm, op.start)
            if op.end < NEVER and (has_no_route or any(each in op.error for each in UNKNOWN)):
                gone = deleted.get(topic, NEVER)
                yield (topic, str(op.end)), [("deleted", gone)] if gone < op.end else []


def unavailable(history: History) -> Facts:
    """C21: sends and polls that did not succeed, longer after the last fault than the setup allows."""
    calm, within = intervals(history), history.setup.get("serve_within_ms")
    if within is None:
        return
    for op in history.ops:
        is_refused = op.f in ("send", "poll") and op.outcome != "ok"
        if is_refused and not any(each in op.error for each in (*UNKNOWN, NO_ROUTE)):
            found = interval(calm, op.start)
            if found and found[2] + within * MS < op.began and (op.end < found[1] or found[1] == NEVER):
                yield (str(op.start),), []


RULES = {"C20": metadata_loss, "C21": unavailable}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
