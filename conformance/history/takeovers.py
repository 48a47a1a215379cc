"""What the verifiers of committed offsets share: the queues that a member took over."""

from collections.abc import Iterator
from typing import Any

from mqproof.conformance.history.verification import ENDS, NEVER, History, Op

Event = tuple[int, str, Op]


def timeline(history: History) -> list[Event]:
    """Return the begins and ends of commits and queries, and the assignments, in order."""
    found = list[Event]()
    for op in history.ops:
        if op.f in ("assign", "commit") or (op.f == "query" and op.outcome == "ok"):
            found.append((op.start, op.f, op))
        if op.f in ("commit", "query") and op.end < NEVER and (op.f == "commit" or op.outcome == "ok"):
            found.append((op.end, f"{op.f} ended", op))
    return sorted(found, key=lambda event: event[0])


def takeovers(history: History) -> Iterator[tuple[Op, int]]:
    """Yield the queries of members that then took the queue over, with the first offset of their listener.

    A call after a reset, or after the end of a broker's life, does not count.
    """
    calls = [(op.start, "call", op) for op in history.reads if op.f == "consume"]
    owned, resets = dict[Any, set[str]](), dict[Any, int]()
    queries, taken = dict[Any, list[Any]](), list[list[Any]]()
    for index, what, op in sorted([*timeline(history), *calls], key=lambda event: event[0]):
        member = op.group, op.client if what == "call" else op.asked.get("client", "")
        if what == "assign":
            before = owned.get(member, set())
            owned[member] = set() if op.asked.get("left") else set(op.asked.get("queues", ()))
            for queue in before - owned[member]:
                queries.pop((*member, queue), None)
            taken += [queries[*member, each] for each in owned[member] - before if (*member, each) in queries]
        elif what == "commit" and op.asked.get("reset"):
            resets[op.group, op.queue] = index
        elif what == "query ended" and op.answered.get("offset", -1) >= 0:
            if op.queue not in owned.get(member, ()):
                queries[*member, op.queue] = [op, NEVER]
        elif what == "call" and (begun := queries.get((*member, op.queue))):
            is_moved = resets.get((op.group, op.queue), -1) > begun[0].end
            if not is_moved and not history.between(ENDS, begun[0].end, index):
                begun[1] = min(begun[1], op.read[0]["offset"])
    yield from ((op, offset) for op, offset in taken if offset < NEVER)
