"""Verifies the certificates of A01: lost messages.

    python -m mqproof.conformance.history.delivery_verifier HISTORY CERTIFICATES

`end`, a reason for `held` only: the queue was seen to end before the message, which C02 judges.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator

from mqproof.conformance.history.verification import NEVER, Facts, History, Op, main


def lost_write(history: History) -> Facts:
    """A01: the messages answered SEND_OK that were delivered, or whose place a reader passed."""
    first, spans = dict[str, int](), defaultdict[str, dict[str, list[int]]](dict)
    for op in history.reads:
        span = spans[op.queue].setdefault(op.group, [NEVER, -1])
        span[:] = min(span[0], op.read[0]["offset"]), max(span[1], op.read[-1]["offset"])
        for message in op.read:
            first.setdefault(message["id"], op.at)
    for sent, number, message in history.placed:
        offset, passed, status = sent.offset + number, message["id"] in first, sent.answered["status"]
        reasons = [("read", first[message["id"]])] if passed else []
        for name, (low, high) in spans[sent.queue].items() if not passed else ():
            group = history.groups[name]
            tags = group.get("tags", ())
            passed |= low < offset < high and (not tags or message.get("tag", "") in tags)
            passed |= offset < low and not tags and group.get("from_start", True)
        if passed and not reasons and status == "SEND_OK":
            reasons = history.losses(status, sent.end) + list(ends(history, sent, offset))
        if passed and status == "SEND_OK":
            yield (sent.start, number), reasons


def ends(history: History, sent: Op, offset: int) -> Iterator[tuple[str, int]]:
    """Yield the answers that the queue begins after the offset, or ended before it after the send."""
    for op in history.ops:
        if op.queue == sent.queue and op.outcome == "ok" and op.f in ("bounds", "poll"):
            empty = op.asked.get("offset", -1) if op.f == "poll" and not op.read else -1
            if op.f == "bounds" and op.answered.get("min", -1) > offset:
                yield "expired", op.end
            elif op.start > sent.end and 0 <= op.answered.get("max", empty) <= offset:
                yield "end", op.end


RULES = {"A01": lost_write}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
