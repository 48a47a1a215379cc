"""Verifies the certificates of A07: repeated deliveries.

    python -m mqproof.conformance.history.repetition_verifier HISTORY CERTIFICATES

This program reads the history itself, and imports only Python's standard library. A rule has subjects: the
facts that need a reason. A certificate of `held` states a reason for each, with the index of the line that
shows it. A certificate of `violated` names subjects for which no line shows a reason.
"""

import json
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import SimpleNamespace as Op
from typing import Any

NEVER = 1 << 62
ENDS = {"kill", "crash_os", "lose_power", "lose_disk", "shutdown", "start", "promote"}
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
        outcome=last["type"], asked=asked, answered=answered, queue=asked.get("queue", ""),
        group=asked.get("group", ""), client=asked.get("client") or str(first["process"]),
        read=read.get("messages", []),
    )  # fmt: skip


class History:
    """The operations of a history, in the order of their ends."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.setup, self.faults, self.ops = dict[str, Any](), list[int](), list[Op]()
        begun: dict[int | str, dict[str, Any]] = {}
        for number, line in enumerate(map(json.loads, lines)):
            if line["index"] != number:
                raise RefusedError(f"line {number} of the history is missing")
            if line["f"] == "setup":
                self.setup = line["value"]
            elif line["f"] == "fault":
                self.faults += [number] * (line["value"]["kind"] in ENDS)
            elif line["type"] == "invoke":
                begun[line["process"]] = line
            else:
                self.ops.append(operation(begun.pop(line["process"]), line))
        self.ops += [operation(first, {"type": "info"}) for first in begun.values()]
        self.reads = sorted((op for op in self.ops if op.read), key=lambda op: op.at)
        self.moves, self.assigned = defaultdict[str, list[int]](list), defaultdict[Any, list[Op]](list)
        for op in self.ops:
            if op.f == "assign":
                self.moves[op.group] += [op.start, op.end]
                self.assigned[op.group, op.client].append(op)
            elif op.asked.get("reset") or (op.asked.get("seek") and op.outcome == "ok"):
                self.moves[op.group].append(op.start)
        for found in self.moves.values():
            found.sort()

    def causes(self, group: str, after: int, before: int) -> Reasons:
        """Return the lines between the two that move the consumers of a group."""
        moves = self.moves[group]
        found = [("move", index) for index in moves[bisect_right(moves, after) : bisect_left(moves, before)]]
        return found + [("fault", index) for index in self.faults if after < index < before]


def duplicate_delivery(history: History) -> Iterator[tuple[tuple[Any, ...], Reasons]]:
    """A07: the places that a group, or a member of a broadcast group, received again."""
    last = dict[tuple[str, str, int], Op]()
    groups = history.setup.get("groups", {})
    for op in (each for each in history.reads if each.f != "pop"):
        receiver = f"{op.group} {op.client}" if groups.get(op.group, {}).get("broadcast") else op.group
        for message in op.read:
            place = receiver, op.queue, message["offset"]
            before, last[place] = last.get(place), op
            if before is None:
                continue
            owned = [each for each in history.assigned[op.group, op.client] if each.start < before.at][-1:]
            reasons = history.causes(op.group, before.start, op.at)
            reasons += [("failed", before.start)] * (before.f == "consume" and before.outcome != "ok")
            reasons += [("seek", op.start)] * bool(op.asked.get("seek"))
            if op.client != before.client:
                reasons += [
                    ("owner", each.start) for each in owned if op.queue in each.asked.get("queues", ())
                ]
            yield (op.start, message["offset"]), reasons


RULES = {"A07": duplicate_delivery}


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
        if verdict == "violated" and subjects[subject]:
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
