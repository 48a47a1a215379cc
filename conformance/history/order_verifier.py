"""Verifies the orders that `mqproof check-history --orders` wrote, without the code that found them.

    python -m mqproof.conformance.history.order_verifier HISTORY ORDERS

This program reads the history itself, and imports only Python's standard library. It accepts an order of a
queue if all of the following is true:

- Each operation that must have an order occurs exactly once.
- Each takes effect after the line with which it begins, and not after the line with which it ends. So an
  operation that ended before another began is the earlier one.
- Each take returns the oldest value of the queue, and the queue is empty at each answer that it is.
"""

import heapq
import json
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

NEVER = 1 << 62
Interval = tuple[int, int]
"""The indexes of the lines with which an operation begins and ends."""


class RefusedError(Exception):
    """An order is not valid, or none was given. The message says where."""


class Queue:
    """The operations of one queue, as one group observed them."""

    def __init__(self) -> None:
        self.puts: dict[str, Interval] = {}
        self.takes: dict[str, Interval] = {}
        self.empties: list[Interval] = []


def operations(lines: Iterable[bytes]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Yield the first and the last line of each operation, in the order of the last lines."""
    begun: dict[int | str, dict[str, Any]] = {}
    for line in lines:
        event = json.loads(line)
        if event["f"] == "setup":
            yield event, None
        elif event["type"] == "invoke":
            begun[event["process"]] = event
        elif event["process"] in begun:
            yield begun.pop(event["process"]), event
    for event in begun.values():
        yield event, None


def queues(lines: Iterable[bytes]) -> dict[tuple[str, str], Queue]:
    """Return what each order must contain, by group and queue. Messages never polled are left out."""
    sends: dict[str, tuple[Interval, bool]] = {}
    polls: list[tuple[Interval, dict[str, Any], dict[str, Any]]] = []
    setup: dict[str, Any] = {}
    for first, last in operations(lines):
        asked, answered = first.get("value", {}), (last or {}).get("value", {})
        interval = first["index"], last["index"] if last and last["type"] != "info" else NEVER
        if first["f"] == "setup":
            setup = asked
        elif first["f"] == "send":
            attempts = answered.get("attempts", 1) if last else 2
            is_known = attempts == 1 and not (last and last["type"] == "fail")
            for message in asked["messages"]:
                sends[message["id"]] = interval, is_known and not message.get("deliver_at")
        elif first["f"] == "poll" and last and last["type"] == "ok":
            polls.append((interval, asked, answered))
    found: dict[tuple[str, str], Queue] = defaultdict(Queue)
    for interval, asked, answered in polls:
        group = setup.get("groups", {}).get(asked["group"], {})
        if asked["queue"].startswith("%") or group.get("tags") or group.get("broadcast"):
            continue
        queue = found[asked["group"], asked["queue"]]
        for message in answered.get("messages", ()):
            sent, is_certain = sends.get(message["id"], ((NEVER, NEVER), False))
            if message["id"] not in queue.takes and is_certain and sent[0] <= interval[1]:
                queue.puts[message["id"]], queue.takes[message["id"]] = sent, interval
        is_empty = not answered.get("messages") and answered.get("max", -1) == asked.get("offset", -1) >= 0
        if setup.get("visible_within_ms") == 0 and is_empty:
            queue.empties.append(interval)
    return found


def verify(queue: Queue, order: Iterable[tuple[str, str, int]]) -> int:
    """Return the number of steps of a valid order. Raises RefusedError."""
    waiting = {"put": dict(queue.puts), "take": dict(queue.takes)}
    answers, open_answers = deque(sorted(queue.empties)), list[int]()
    content: deque[str] = deque()
    now = count = 0
    for count, (kind, name, at) in enumerate(order, start=1):
        step = f"step {count}, {kind} {name}".rstrip()
        if at < now:
            raise RefusedError(f"{step}: at index {at}, after a step at index {now}")
        now = at
        if kind == "empty":
            while answers and answers[0][0] <= at:
                heapq.heappush(open_answers, answers.popleft()[1])
            if content or not open_answers or heapq.heappop(open_answers) < at:
                raise RefusedError(
                    f"{step}: the queue is not empty, or there is no such answer at index {at}"
                )
            continue
        begin, end = waiting[kind].pop(name, (NEVER, NEVER))
        if not begin <= at <= end:
            raise RefusedError(f"{step}: there is no such operation at index {at}, or it occurs twice")
        if kind == "put":
            content.append(name)
        elif not content or content.popleft() != name:
            raise RefusedError(f"{step}: it is not the oldest message of the queue")
    left = len(waiting["put"]) + len(waiting["take"]) + len(answers) + len(open_answers)
    if left:
        raise RefusedError(f"{left} operations are missing")
    return count


def main(history: str, orders: str) -> int:
    """Print a line for each queue; return 1 if an order is refused or missing."""
    refused = 0
    with open(history, "rb") as lines, open(orders, "rb") as given:  # noqa: PTH123  # the paths are texts
        expected = queues(lines)
        for line in given:
            answer = json.loads(line)
            group, name = answer["group"], answer["queue"]
            try:
                if "order" not in answer:
                    raise RefusedError(answer.get("violation", "no order"))
                said = f"accepted, {verify(expected.pop((group, name), Queue()), answer['order'])} steps"
            except (RefusedError, KeyError) as error:
                refused += 1
                said = f"refused: {error}"
            print(f"{group} {name}: {said}")
    for group, name in expected:
        print(f"{group} {name}: refused: it has no order")
    return int(bool(refused or expected))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
