"""Verifies the certificates of A01 and A04: what was delivered.

    python -m mqproof.conformance.history.delivery_verifier HISTORY CERTIFICATES

This program reads the history itself, and imports only Python's standard library. A rule has subjects: the
facts that need a reason. A certificate of `held` states a reason for each, with the index of the line that
shows it. A certificate of `violated` names subjects for which no line shows a reason. `end`, for `held`
only: the queue was seen to end before the message, which C02 judges.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import SimpleNamespace as Op
from typing import Any

NEVER = 1 << 62
CRASHES, LOSSES = {"crash_os", "lose_power"}, {"lose_disk", "promote"}
Reasons = list[tuple[str, int]]


class RefusedError(Exception):
    """A certificate is not valid, or none was given. The message says why."""


def operation(first: dict[str, Any], last: dict[str, Any]) -> Op:
    """Return an operation; `at` is the index from which its messages are known to be delivered."""
    asked, answered = first.get("value", {}), last.get("value", {}) if last["type"] == "ok" else {}
    f, end = first["f"], last["index"] if last["type"] != "info" else NEVER
    read = asked if f == "consume" else answered if f in ("poll", "pop") else {}
    return Op(
        f=f, start=first["index"], end=end, at=first["index"] if f == "consume" else end,
        outcome=last["type"], asked=asked, answered=answered, sent=asked["messages"] if f == "send" else [],
        queue=answered.get("queue") or asked.get("queue", ""),
        read=read.get("messages", []), offset=answered.get("offset", -1) if f == "send" else -1,
    )  # fmt: skip


class History:
    """The operations of a history, in the order of their ends."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.setup, self.faults, self.ops = dict[str, Any](), list[tuple[int, str]](), list[Op]()
        begun: dict[int | str, dict[str, Any]] = {}
        for number, line in enumerate(map(json.loads, lines)):
            if line["index"] != number:
                raise RefusedError(f"line {number} of the history is missing")
            if line["f"] == "setup":
                self.setup = line["value"]
            elif line["f"] == "fault":
                self.faults.append((number, line["value"]["kind"]))
            elif line["type"] == "invoke":
                begun[line["process"]] = line
            else:
                self.ops.append(operation(begun.pop(line["process"]), line))
        self.ops += [operation(first, {"type": "info"}) for first in begun.values()]
        self.reads = sorted((op for op in self.ops if op.read), key=lambda op: op.at)
        self.placed = [(op, n, each) for op in self.ops if op.offset >= 0 for n, each in enumerate(op.sent)]
        self.readers = defaultdict[str, list[Op]](list)
        for op in self.reads:
            for message in op.read:
                self.readers[message["id"]].append(op)

    def faults_after(self, kinds: set[str], index: int) -> Reasons:
        return [("fault", at) for at, kind in self.faults if kind in kinds and at > index]


def lost_write(history: History) -> Iterator[tuple[tuple[Any, ...], Reasons]]:
    """A01: the messages answered SEND_OK that were delivered, or whose place a reader passed."""
    spans = defaultdict[str, dict[str, list[int]]](dict)
    for op in history.reads:
        span = spans[op.queue].setdefault(op.asked["group"], [NEVER, -1])
        span[:] = min(span[0], op.read[0]["offset"]), max(span[1], op.read[-1]["offset"])
    fatal = CRASHES if history.setup.get("flush_mode") == "ASYNC_FLUSH" else set[str]()
    fatal |= LOSSES if history.setup.get("replication") != "sync" else set()
    for sent, number, message in history.placed:
        reasons = [("read", op.at) for op in history.readers.get(message["id"], [])]
        offset, passed = sent.offset + number, False
        for name, (low, high) in spans[sent.queue].items() if not reasons else ():
            group = history.setup.get("groups", {}).get(name, {})
            tags = group.get("tags", ())
            passed |= low < offset < high and (not tags or message.get("tag", "") in tags)
            passed |= offset < low and not tags and group.get("from_start", True)
        if passed:
            reasons = history.faults_after(fatal, sent.end) + list(ends(history, sent, offset))
        if sent.answered["status"] == "SEND_OK" and (reasons or passed):
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


def phantom(history: History) -> Iterator[tuple[tuple[Any, ...], Reasons]]:
    """A04: the delivered messages."""
    sends_of = defaultdict[str, list[Op]](list)
    for op in history.ops:
        for message in op.sent:
            sends_of[message["id"]].append(op)
    for id_, reads in history.readers.items():
        sends, topics = sends_of[id_], {op.queue.split("/")[0] for op in reads if op.queue[0] != "%"}
        sound = any(op.outcome != "fail" for op in sends) and topics <= {sends[-1].asked["topic"]}
        yield (id_,), [("sent", op.start) for op in sends if sound and op.start < reads[0].at]


RULES = {"A01": lost_write, "A04": phantom}


def verify(history: History, rule: str, verdict: str, evidence: Iterable[list[Any]]) -> None:
    """Raise RefusedError unless the evidence proves the verdict of the rule."""
    subjects = dict(RULES[rule](history))
    given = {tuple(subject): tuple(reason) for subject, *reason in evidence}
    if verdict not in ("held", "violated") or (verdict == "violated" and not given):
        raise RefusedError(f"{verdict}, without evidence")
    for subject in given if verdict == "violated" else subjects | given:
        if subject not in subjects:
            raise RefusedError(f"{subject} is not in the history")
        if verdict == "held" and given.get(subject) not in subjects[subject]:
            raise RefusedError(f"{subject}: no line shows {given.get(subject)}")
        if verdict == "violated" and any(kind != "end" for kind, _ in subjects[subject]):
            raise RefusedError(f"{subject} has a reason: {subjects[subject][0]}")


def main(history_file: str, certificate_file: str) -> int:
    """Print a line for each rule; return 1 if a certificate is refused or missing."""
    refused = 0
    with open(history_file, "rb") as lines, open(certificate_file, "rb") as texts:  # noqa: PTH123
        history = History(lines)
        given = {each["rule"]: each for each in map(json.loads, texts)}
    for rule in RULES:
        try:
            verdict, evidence = given[rule]["verdict"], given[rule]["evidence"]
            verify(history, rule, verdict, evidence)
            print(f"{rule}: {verdict}, accepted with {len(evidence)} facts")
        except (RefusedError, KeyError) as error:
            refused = 1
            print(f"{rule}: refused: {error}")
    return refused


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
