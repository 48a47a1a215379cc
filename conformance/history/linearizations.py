"""For every queue of a history the order that makes it a queue's, or the operations that allow none.

An order is a certificate: whoever doubts it goes through its steps, as `linearize.certified` does here.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from mqproof.conformance.history.linearize import Kind, Violation, certified, linearize
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules.linear import INSTANTS, Seen, queues, words
from mqproof.report.model import Table

_TOLD_MAX: Final = 6


class Order(NamedTuple):
    """What became of the search for one queue's order."""

    seen: Seen
    steps: tuple[tuple[str, str, int], ...]
    """(put, take or empty; message id; index of the line after which it took effect); none without order."""
    why: str
    """The operations that allow none; empty when there is one."""


def orders(told: Record) -> Iterator[Order]:
    """Of each queue of each group that polls. Raises AssertionError: an order is found that is none."""
    for seen in queues(told):
        found = linearize(seen.elements, seen.empties)
        if isinstance(found, Violation):
            yield Order(seen, (), words(told, seen, found))
            continue
        assert certified(found, seen.elements, seen.empties), f"{seen.queue}: the order is no queue's"
        ids = {Kind.PUT: seen.elements, Kind.TAKE: seen.elements}
        steps = (
            (kind.value, ids[kind][number].value if kind in ids else "", instant // INSTANTS)
            for kind, number, instant in found
        )
        yield Order(seen, tuple(steps), "")


def written(order: Order) -> bytes:
    """A line of JSON: group, queue, and `order` with its steps, or `violation`."""
    told: dict[str, Any] = {"group": order.seen.group, "queue": order.seen.queue}
    told |= {"violation": order.why} if order.why else {"order": order.steps}
    return msgspec.json.encode(told) + b"\n"


def table(found: list[Order]) -> Table:
    """For people: how each order begins."""
    rows = tuple((each.seen.group, each.seen.queue, str(len(each.steps)), _begin(each)) for each in found)
    return Table("Orders of the queues", ("group", "queue", "steps", "order, certified"), rows)


def _begin(order: Order) -> str:
    if order.why:
        return f"none: {order.why}"
    told = [f"{kind} {id_}".strip() for kind, id_, _ in order.steps[:_TOLD_MAX]]
    return ", ".join(told) + (", …" if len(order.steps) > _TOLD_MAX else "")
