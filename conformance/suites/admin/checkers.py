"""The named invariants of message queries; each one is a pure function of a run.

The verdict is unknown, never held, if nothing was observed that could show a violation. Names and ids are
those of spec/invariants.toml.
"""

from collections.abc import Iterator
from typing import Final

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.engine.stepped_run import Checkers, Run
from mqproof.conformance.suites.admin.oracle import may_be_found
from mqproof.conformance.suites.admin.steps import ById, ByKey, DeleteTopic, Operation, Pull, Send


def _followed(run: Run[Operation]) -> Iterator[tuple[int, Operation, dict[str, Send], set[str]]]:
    """Yield (step, operation, messages sent before it, ids of those whose topic has been deleted since)."""
    sent: dict[str, Send] = {}
    gone: set[str] = set()
    for step, operation in run.numbered():
        match operation:
            case Send(offset_id=str()):
                sent[operation.msg_id] = operation
            case DeleteTopic(topic):
                gone |= {msg_id for msg_id, send in sent.items() if send.topic == topic}
        yield step, operation, sent, gone


def _has_key(send: Send, key: str) -> bool:
    return key == send.msg_id or key in send.keys.split()


def no_acked_lost(run: Run[Operation]) -> Finding:
    """DELIV-1 NoAckedLost: an acknowledged message is found by its keys and its id, and is pulled.

    This applies as long as its topic exists.
    """
    tally = Tally()
    for step, operation, sent, gone in _followed(run):
        wanted: list[str] = []
        found: tuple[str | None, ...] = ()
        match operation:
            case ByKey(topic, key, found):
                wanted = [m for m, send in sent.items() if send.topic == topic and _has_key(send, key)]
            case ById(msg_id, one):
                wanted, found = [msg_id], (one,)
            case Pull(_, topic, queue_id, tuple() as found):
                wanted = [m for m, s in sent.items() if (s.topic, s.queue_id) == (topic, queue_id)]
        for msg_id in wanted:
            tally.looked += 1
            if msg_id not in gone and msg_id not in found:
                tally.found(f"step {step}: {msg_id} is not found: {operation}")
    return tally.finding("messages")


def no_phantom(run: Run[Operation]) -> Finding:
    """DELIV-2 NoPhantom: every message found was sent to that topic, with a key that has the same hash."""
    tally = Tally()
    for step, operation, sent, _ in _followed(run):
        match operation:
            case ByKey(topic, key, found):
                for msg_id in found:
                    tally.looked += 1
                    send = sent.get(msg_id)
                    keys = (msg_id, *send.keys.split()) if send else ()
                    if send is None or send.topic != topic or not may_be_found(key, keys):
                        tally.found(f"step {step}: {msg_id} does not have this topic or key: {operation}")
            case ById(msg_id, str() as one):
                tally.looked += 1
                if one != msg_id:
                    tally.found(f"step {step}: wrong message: {operation}")
            case Pull(_, topic, queue_id, tuple() as found):
                for msg_id in found:
                    tally.looked += 1
                    send = sent.get(msg_id)
                    if send is None or (send.topic, send.queue_id) != (topic, queue_id):
                        tally.found(f"step {step}: {msg_id} was not sent there: {operation}")
    return tally.finding("messages")


CHECKERS: Final[Checkers[Operation]] = {"DELIV-1": no_acked_lost, "DELIV-2": no_phantom}
