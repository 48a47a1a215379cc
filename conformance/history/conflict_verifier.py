"""Verifies the certificates of A08, C01 and C05: two messages at one place.

python -m mqproof.conformance.history.conflict_verifier HISTORY CERTIFICATES
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from mqproof.conformance.history.verification import Facts, History, main


def answers(history: History) -> dict[tuple[str, int], list[Any]]:
    """Return the sends answered with each place: each with the number and the id of the message."""
    found = defaultdict[tuple[str, int], list[Any]](list)
    for sent, number, message in history.placed:
        found[sent.queue, sent.offset + number].append((sent, number, message["id"]))
    return found


def conflicts(history: History) -> Iterator[tuple[str, tuple[str, str], list[tuple[str, int]]]]:
    """Yield the places at which another message was read than before, or than was answered."""
    answered, held = answers(history), dict[tuple[str, int], Any]()
    for op in history.reads:
        for message in op.read:
            place, id_ = (op.queue, message["offset"]), message["id"]
            subject = place[0], str(place[1])
            before, other = held.get(place, (op, id_))
            if before is not op and other == id_:
                continue
            if other != id_:
                reasons = history.losses("SEND_OK", before.at, op.at)
                differ = before.answered.get("node") != op.answered.get("node")
                yield "C05" if differ and not reasons else "A08", subject, reasons
                if not reasons:
                    continue
            held[place] = op, id_
            sends = answered.get(place, [])
            chosen: Any = sends[0] if sends else (None, 1, "")
            for later in sends[1:]:
                status = chosen[0].answered["status"]
                if later[0].end < op.at and history.losses(status, chosen[0].end, later[0].end):
                    chosen = later
            sent, number, expected = chosen
            if not number and expected != id_:
                reasons = history.losses(sent.answered["status"], sent.end, op.at)
                yield "A08", subject, reasons + history.losses("SEND_OK", op.at, sent.end)


def collision(history: History) -> Facts:
    """C01: the places answered to two sends of different messages."""
    for (queue, offset), sends in answers(history).items():
        for (sent, _, first), (other, _, second) in pairwise(sends):
            if first != second:
                reasons = history.losses(sent.answered["status"], sent.end, other.end)
                yield (queue, str(offset)), reasons


RULES = {
    "A08": lambda history: ((place, why) for rule, place, why in conflicts(history) if rule == "A08"),
    "C01": collision,
    "C05": lambda history: ((place, why) for rule, place, why in conflicts(history) if rule == "C05"),
}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
