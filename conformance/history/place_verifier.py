"""Verifies the certificates of A06 and A11: the places of messages.

    python -m mqproof.conformance.history.place_verifier HISTORY CERTIFICATES

This program reads the history itself, and imports only Python's standard library. A rule has subjects: the
facts that need a reason. A certificate of `held` states a reason for each, with the index of the line that
shows it. A certificate of `violated` names subjects for which no line shows a reason.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import SimpleNamespace as Op
from typing import Any

NEVER = 1 << 62
CRASHES, LOSSES = {"crash_os", "lose_power"}, {"lose_disk", "promote"}
ENDS = {*CRASHES, *LOSSES, "kill", "shutdown", "start"}
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
        answered=answered, process=first["process"], queue=answered.get("queue") or asked.get("queue", ""),
        sent=asked["messages"] if f == "send" else [],
        tries=last.get("value", {}).get("attempts", 1), read=read.get("messages", []),
        offset=answered.get("offset", -1) if f == "send" else -1,
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
        unanswered = {"type": "info", "value": {"attempts": 2}}
        self.ops += [operation(first, unanswered) for first in begun.values()]
        self.reads = sorted((op for op in self.ops if op.read), key=lambda op: op.at)
        self.placed = [op for op in self.ops if op.offset >= 0]

    def faults_between(self, kinds: set[str], after: int, before: int) -> Reasons:
        return [("fault", index) for index, kind in self.faults if kind in kinds and after < index < before]


def duplicate_offset(history: History) -> Iterator[tuple[tuple[Any, ...], Reasons]]:
    """A06: the messages at two places."""
    sends = defaultdict[str, list[Op]](list)
    for op in history.ops:
        for message in op.sent:
            sends[message["id"]].append(op)
    seen = [(op.sent[0]["id"], (op.queue, op.offset), op.end) for op in history.placed]
    own = [op for op in history.reads if op.queue[0] != "%"]
    seen += [(message["id"], (op.queue, message["offset"]), op.at) for op in own for message in op.read]
    places, again = dict[str, tuple[str, int]](), dict[str, int]()
    for id_, place, at in seen:
        if places.setdefault(id_, place) != place:
            again.setdefault(id_, at)
    for id_, at in again.items():
        mine = sends[id_]
        delayed = [
            op.start for op in mine[-1:] for each in op.sent if each["id"] == id_ and "deliver_at" in each
        ]
        retries = [("retry", op.start) for op in mine if op.tries > 1 or len(mine) > 1]
        yield (id_,), retries + (history.faults_between(ENDS, delayed[0], at) if delayed else [])


def nonmonotonic_send(history: History) -> Iterator[tuple[tuple[Any, ...], Reasons]]:
    """A11: the sends of a process that are in the queue before its last one."""
    last = dict[tuple[int | str, str], Op]()
    is_async = history.setup.get("flush_mode") == "ASYNC_FLUSH"
    is_sync = history.setup.get("replication") == "sync"
    for op in history.placed:
        before, last[op.process, op.queue] = last.get((op.process, op.queue)), op
        if before is not None and op.offset < before.offset:
            status = before.answered["status"]
            crash = CRASHES if is_async or status == "FLUSH_DISK_TIMEOUT" else set()
            lose = LOSSES if status != "SEND_OK" or not is_sync else set()
            yield (op.start,), history.faults_between(crash | lose, before.end, op.end)


RULES = {"A06": duplicate_offset, "A11": nonmonotonic_send}


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
