"""The order of a queue is shown with every step; without an order, the conflicting operations are shown."""

from itertools import groupby

import msgspec
import pytest

from mqproof.conformance.history import linearizations
from mqproof.conformance.history.exact_delivery import clean
from mqproof.conformance.history.injected import INJECTED
from mqproof.conformance.history.injected.parts import QUEUE
from mqproof.conformance.history.linearizations import orders, table, written
from mqproof.conformance.history.lines import Line
from mqproof.conformance.history.pairing import record


def polled(history: list[Line], group: str, queue: str) -> list[str]:
    """Return the messages of the queue that the group received, each one once."""
    reads = [read for read in record(history).reads if (read.group, read.queue) == (group, queue)]
    return list(dict.fromkeys(message.id for read in reads for message in read.messages))


@pytest.mark.parametrize("seed", [1, 2])
def test_an_order_takes_the_polled_messages_in_the_order_of_their_puts(seed: int) -> None:
    history = clean(seed).lines
    found = {(each.seen.group, each.seen.queue): each for each in orders(record(history))}
    assert not [each.why for each in found.values() if each.why]
    order = found["g", QUEUE]
    puts, takes = ([id_ for kind, id_, _ in order.steps if kind == what] for what in ("put", "take"))
    assert puts == takes
    known = [each.message.id for each in record(history).sends if each.attempts == 1]
    assert sorted(puts) == sorted(set(polled(history, "g", QUEUE)) & set(known))
    assert [index for index, _ in groupby(index for _, _, index in order.steps)] == sorted(
        {index for _, _, index in order.steps}
    )


def test_a_missing_order_is_reported_with_the_two_conflicting_messages() -> None:
    world = clean(3)
    INJECTED["overtaken"].inject(world)
    found = list(orders(record(world.lines)))
    (none,) = [each for each in found if each.why]
    sends = (sent for sent in record(world.lines).sends if sent.span.process in ("x1", "x2"))
    first, second = (sent.message.id for sent in sends)
    assert none.why.startswith(f"x1 sent {first} (index ")
    assert f" to {QUEUE} before x2 sent {second} (index " in none.why
    assert f"polled {second} (index " in none.why
    assert none.why.index(f"polled {second}") < none.why.index(f"before {first} (index")
    assert msgspec.json.decode(written(none))["violation"] == none.why
    rows = {(row[0], row[1]): row for row in table(map(linearizations.row, found)).rows}
    assert rows[none.seen.group, none.seen.queue][2:] == ("0", f"none: {none.why}")
