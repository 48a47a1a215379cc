"""Verifies the certificates of A01, C02 and C19: lost messages.

python -m mqproof.conformance.history.delivery_verifier HISTORY CERTIFICATES
"""

import sys

from mqproof.conformance.history.fates import Fates
from mqproof.conformance.history.verification import Facts, History, main


def lost_write(history: History) -> Facts:
    """A01: the messages answered SEND_OK that were delivered, or whose place a reader passed."""
    fates = Fates(history)
    for sent, number, message in history.placed:
        status, id_, offset = sent.answered["status"], message["id"], sent.offset + number
        if status == "SEND_OK" and id_ in fates.read:
            yield (sent.start, number), [("read", fates.read[id_])]
        elif status == "SEND_OK" and fates.passed(sent, number):
            reasons = history.losses(status, sent.end) + fates.expired(sent.queue, offset)
            yield (sent.start, number), reasons + fates.cut(sent, number)


def truncated(history: History) -> Facts:
    """C02: the messages answered SEND_OK before which their queue permanently ended."""
    fates = Fates(history)
    for sent, number, message in history.placed:
        status = sent.answered["status"]
        if status == "SEND_OK" and fates.cut(sent, number):
            yield (message["id"], sent.queue, str(sent.offset + number)), history.losses(status, sent.end)


def weakly_stored(history: History) -> Facts:
    """C19: the messages with a weaker status that are lost."""
    fates = Fates(history)
    for sent, number, message in history.placed:
        status = sent.answered["status"]
        if status != "SEND_OK" and fates.lost(sent, number):
            yield (message["id"], sent.queue, str(sent.offset + number)), history.losses(status, sent.end)


RULES = {"A01": lost_write, "C02": truncated, "C19": weakly_stored}

if __name__ == "__main__":
    sys.exit(main(RULES, *sys.argv[1:3]))
