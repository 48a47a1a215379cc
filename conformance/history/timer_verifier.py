"""Verifies the certificates of C12: delayed messages.

python -m mqproof.conformance.history.timer_verifier HISTORY CERTIFICATES
"""

import sys

from mqproof.conformance.history.undisturbed import MS, interval, intervals
from mqproof.conformance.history.verification import NEVER, Facts, History, Op, main


def topic_of(queue: str) -> str:
    return queue.split("/")[0]


def timer(history: History) -> Facts:
    """C12: delayed messages that arrive early, after their recall, late or never."""
    skew, within = history.setup.get("skew_ms", 0) * MS, history.setup.get("deliver_within_ms")
    calm, sends = intervals(history), {each["id"]: op for op in history.ops for each in op.sent}
    delayed = ((op, each) for op in history.ops for each in op.sent if each.get("deliver_at"))
    due = {each["id"]: (op, each["deliver_at"]) for op, each in delayed}
    recalled = {op.asked["id"]: op.end for op in history.ops if op.f == "recall" and op.outcome == "ok"}
    topics = {sends[id_].asked["topic"] for id_ in recalled.keys() & sends.keys()}
    topics |= {sent.asked["topic"] for sent, _ in due.values()}
    delivered = set[str]()

    def time(id_: str, index: int) -> int:
        """Return when a message is due: after its time and the last fault that was over by the line."""
        found = interval(calm, index)
        return max(due[id_][1], found[2]) if found else NEVER

    for op in (each for each in history.reads if topic_of(each.queue) in topics):
        at = op.began if op.f == "consume" else op.ended
        for id_ in (message["id"] for message in op.read):
            if recalled.get(id_, NEVER) < op.start:
                yield (id_,), []
            if id_ in due and id_ not in delivered:
                delivered.add(id_)
                is_early = at < due[id_][1] - skew
                if is_early or (within is not None and op.began - time(id_, op.start) - skew > within * MS):
                    yield (id_,), []
    last = {topic_of(op.queue): op.began for op in sorted(history.ops, key=lambda op: op.at) if is_read(op)}
    if within is None:
        return
    for id_, (sent, _) in due.items():
        until = time(id_, NEVER - 1) + within * MS
        is_late = history.last_time - skew > until and last.get(sent.asked["topic"], -1) > until
        if is_late and sent.outcome == "ok" and id_ not in delivered and id_ not in recalled:
            yield (id_,), history.losses(sent.answered["status"], sent.end)


def is_read(op: Op) -> bool:
    return op.f == "consume" or (op.f in ("poll", "pop") and op.outcome == "ok")


RULES = {"C12": timer}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
