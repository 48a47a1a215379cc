"""What the verifiers of certificates share: they read a history, and accept or refuse certificates.

A rule has subjects: the facts that need a reason. A certificate of `held` states a reason for each, with the
index of the line that shows it. One of `violated` names subjects for which no line shows a reason. One of
`unknown` may name subjects that are `open`: neither held nor violated. It is refused if the history shows a
violation.
"""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from types import SimpleNamespace
from typing import Any

NEVER = 1 << 62
CRASHES, LOSSES = {"crash_os", "lose_power"}, {"lose_disk", "promote"}
UNANSWERED = {"type": "info", "value": {"attempts": 2}}
ENDS = {*CRASHES, *LOSSES, "kill", "shutdown", "start"}
Op = SimpleNamespace
Reasons = list[tuple[str, int]]
Facts = Iterator[tuple[tuple[Any, ...], Reasons]]


class RefusedError(Exception):
    """A certificate is not valid, or none was given. The message says why."""


def operation(first: dict[str, Any], last: dict[str, Any]) -> Op:
    """Return an operation; `at` is the index from which its messages are known to be delivered."""
    asked, answered = first.get("value", {}), last.get("value", {}) if last["type"] == "ok" else {}
    f, process = first["f"], first["process"]
    end, ended = (last["index"], last["time"]) if last["type"] != "info" else (NEVER, NEVER)
    read = (asked if f == "consume" else answered if f in ("poll", "pop") else {}).get("messages", [])
    return Op(
        f=f, process=process, group=asked.get("group", ""), client=asked.get("client") or str(process),
        start=first["index"], end=end, at=first["index"] if f == "consume" else end, began=first["time"],
        ended=ended, outcome=last["type"], error=last.get("error", ""), asked=asked, answered=answered,
        queue=(f == "send" and answered.get("queue")) or asked.get("queue", ""), read=read,
        offset=answered.get("offset", -1) if f == "send" and "queue" in answered else -1,
        sent=asked["messages"] if f == "send" else [], tries=last.get("value", {}).get("attempts", 1),
    )  # fmt: skip


def first(kind: str, at: list[int], after: int, before: int) -> Reasons:
    """Return the first of the ascending lines that is strictly between two others, as a reason."""
    place = bisect_right(at, after)
    return [(kind, at[place])] if place < len(at) and at[place] < before else []


class History:
    """The operations of a history, in the order of their ends."""

    def __init__(self, lines: Iterable[dict[str, Any]], *, is_whole: bool = True) -> None:
        self.setup, self.faults, self.ops = dict[str, Any](), list[dict[str, Any]](), list[Op]()
        begun: dict[int | str, dict[str, Any]] = {}
        for number, line in enumerate(lines):
            if is_whole and line["index"] != number:
                raise RefusedError(f"line {number} of the history is missing")
            self.last_time = line["time"]
            if line["f"] == "setup":
                self.setup = line["value"]
            elif line["f"] == "fault":
                self.faults.append({"index": line["index"], "time": line["time"], **line["value"]})
            elif line["type"] == "invoke":
                begun[line["process"]] = line
            else:
                self.ops.append(operation(begun.pop(line["process"]), line))
        self.ops += [operation(first, UNANSWERED) for first in begun.values()]
        self.reads = sorted((op for op in self.ops if op.read), key=lambda op: op.at)
        self.placed = [(op, n, each) for op in self.ops if op.offset >= 0 for n, each in enumerate(op.sent)]
        self.groups = defaultdict[str, dict[str, Any]](dict, self.setup.get("groups", {}))
        self.moves = defaultdict[str, list[int]](list)
        for op in self.ops:
            if op.f == "assign" or op.asked.get("reset") or (op.asked.get("seek") and op.outcome == "ok"):
                self.moves[op.group] += [op.start, op.end] if op.f == "assign" else [op.start]
        self.moves.update((group, sorted(at)) for group, at in self.moves.items())
        self.at = defaultdict[str, list[int]](list)
        for fault in self.faults:
            self.at[fault["kind"]].append(fault["index"])

    def causes(self, group: str, after: int, before: int) -> Reasons:
        """Return the first line between that moves the consumers of a group, and the faults between."""
        return first("move", self.moves[group], after, before) + self.between(ENDS, after, before)

    def between(self, kinds: set[str], after: int, before: int = NEVER) -> Reasons:
        """Return the first fault of each kind that is strictly between the two lines."""
        return [each for kind in kinds for each in first("fault", self.at[kind], after, before)]

    def losses(self, status: str, after: int, before: int = NEVER) -> Reasons:
        """Return the faults that may lose data which was stored with this status."""
        is_async = self.setup.get("flush_mode") == "ASYNC_FLUSH" or status == "FLUSH_DISK_TIMEOUT"
        is_single = self.setup.get("replication") != "sync" or status != "SEND_OK"
        kinds = (CRASHES if is_async else set()) | (LOSSES if is_single else set())
        return self.between(kinds, after, before)


def verify(facts: Facts, verdict: str, evidence: Iterable[list[Any]]) -> None:
    """Raise RefusedError unless the evidence proves the verdict."""
    known, given = defaultdict[tuple[Any, ...], list[Reasons]](list), defaultdict[Any, Reasons](list)
    for subject, reasons in facts:
        known[subject].append(reasons)
    for name, *reason in evidence:
        given[tuple(name)].append(tuple(reason))
    if verdict not in ("held", "violated", "unknown") or (verdict == "violated" and not given):
        raise RefusedError(f"{verdict}, without evidence")
    for subject in given if verdict == "violated" else known | given:
        if subject not in known:
            raise RefusedError(f"{subject} is not in the history")
        every, shown = known[subject], given[subject]
        is_true = verdict == "violated" or set(shown) <= set(chain(*every))
        is_closed = all(set(one) & set(shown) for one in every) and all(kind != "open" for kind, _ in shown)
        if not is_true or (verdict == "held" and not is_closed):
            raise RefusedError(f"{subject}: no line shows {shown}")
        if verdict == "unknown" and [] in every:
            raise RefusedError(f"{subject} has no reason")
        if verdict == "violated" and all(every):
            raise RefusedError(f"{subject} has a reason: {every[0][0]}")


def main(rules: Mapping[str, Callable[[History], Facts]], history_file: str, certificate_file: str) -> int:
    """Print a line for each rule; return 1 if a certificate is refused or missing."""
    refused = 0
    with open(history_file, "rb") as lines, open(certificate_file, "rb") as texts:  # noqa: PTH123
        history = History(map(json.loads, lines))
        given = {each["rule"]: each for each in map(json.loads, texts)}
    for rule, facts in rules.items():
        try:
            verdict, evidence = given[rule]["verdict"], given[rule]["evidence"]
            verify(facts(history), verdict, evidence)
            print(f"{rule}: {verdict}, accepted with {len(evidence)} facts")
        except (RefusedError, KeyError) as error:
            refused = 1
            print(f"{rule}: refused: {error}")
    return refused
