"""For every queue of a history, an order that linearizes its operations, or operations that allow none.

An order is a certificate: it can be verified step by step, as `linearize.certified` does here.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from mqproof.conformance.history.linearize import Kind, Violation, certified, linearize
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules.linear import INSTANTS, Seen, queues, words
from mqproof.report.model import Table

_SHOWN_MAX: Final = 6
Row = tuple[str, ...]
"""A row of the table of orders."""


class Order(NamedTuple):
    """The result of the search for one queue's order."""

    seen: Seen
    steps: tuple[tuple[str, str, int], ...]
    """(put, take or empty; message id; index of the line after which it took effect).

    The tuple is empty if there is no order.
    """
    why: str
    """The operations that allow no order; empty if there is one."""


def orders(history: Record) -> Iterator[Order]:
    """Yield the order of each queue for each group that polls it.

    Raises:
        AssertionError: the order that was found is not valid.
    """
    for seen in queues(history):
        found = linearize(seen.elements, seen.empties)
        if isinstance(found, Violation):
            yield Order(seen, (), words(history, seen, found))
            continue
        assert certified(found, seen.elements, seen.empties), (
            f"{seen.queue}: the order is not valid for a queue"
        )
        ids = {Kind.PUT: seen.elements, Kind.TAKE: seen.elements}
        steps = (
            (kind.value, ids[kind][number].value if kind in ids else "", instant // INSTANTS)
            for kind, number, instant in found
        )
        yield Order(seen, tuple(steps), "")


def written(order: Order) -> bytes:
    """Return a line of JSON: group, queue, and `order` with its steps, or `violation`."""
    summary: dict[str, Any] = {"group": order.seen.group, "queue": order.seen.queue}
    summary |= {"violation": order.why} if order.why else {"order": order.steps}
    return msgspec.json.encode(summary) + b"\n"


def row(order: Order) -> Row:
    """Return a row of the table, with the beginning of the order."""
    return order.seen.group, order.seen.queue, str(len(order.steps)), _begin(order)


def table(rows: Iterable[Row]) -> Table:
    """Return a table for people."""
    return Table("Orders of the queues", ("group", "queue", "steps", "order, certified"), tuple(rows))


def _begin(order: Order) -> str:
    if order.why:
        return f"none: {order.why}"
    shown = [f"{kind} {id_}".strip() for kind, id_, _ in order.steps[:_SHOWN_MAX]]
    return ", ".join(shown) + (", …" if len(order.steps) > _SHOWN_MAX else "")
