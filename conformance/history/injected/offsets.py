"""Injected anomalies: committed offsets that are forgotten, go back, or are answered wrongly."""

from typing import Final

from mqproof.conformance.history.exact_delivery import ExactDelivery
from mqproof.conformance.history.injected.parts import QUEUE, Injected, consumed, read, tagged
from mqproof.conformance.history.lines import AssignValue, CommitValue, PollValue, QueryValue


def _forgets_offset(world: ExactDelivery) -> None:
    world.did("x3", CommitValue("new", QUEUE, 5))
    world.did("x3", QueryValue("new", QUEUE), QueryValue(offset=3))


def _less_than_either(world: ExactDelivery) -> None:
    """Inject an answer below both of two concurrent commits; either of them may be the last."""
    for name, offset in (("x3", 5), ("x5", 4)):
        world.begin(name, CommitValue("new", QUEUE, offset))
    for name in ("x3", "x5"):
        world.end(name, CommitValue("new", QUEUE, 5))
    world.did("x3", QueryValue("new", QUEUE), QueryValue(offset=3))


def _commits_less_without_the_queue(world: ExactDelivery) -> None:
    """Inject a lower commit by a member that no longer owns the queue."""
    world.did("x3", AssignValue("new", "x3", (QUEUE,)))
    world.did("x3", AssignValue("new", "x3", ()))
    world.did("x5", AssignValue("new", "x5", (QUEUE,)))
    world.did("x5", CommitValue("new", QUEUE, 5))
    world.did("x3", CommitValue("new", QUEUE, 3))


def _commits_less(world: ExactDelivery) -> None:
    world.did("x3", CommitValue("new", QUEUE, 5))
    world.did("x5", CommitValue("new", QUEUE, 3))


def _to_minimum(world: ExactDelivery) -> None:
    answer = PollValue(next=0, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", PollValue("new", QUEUE, 5), answer)


def _from_beyond_to_minimum(world: ExactDelivery) -> None:
    end = len(world.queue(QUEUE))
    world.did("x3", PollValue("new", QUEUE, end + 5), PollValue(next=0, min=0, max=end))


def _commits_nothing(world: ExactDelivery) -> None:
    world.did("x3", CommitValue("new", QUEUE, -1))


def _commits_unread(world: ExactDelivery) -> None:
    read(world, *world.queue(QUEUE)[:3])
    world.did("x3", CommitValue("group of x3", QUEUE, 7))


def _commits_selected_unread(world: ExactDelivery) -> None:
    """A group that filters commits past a message that it selects and did not receive."""
    consumed(world, "f", QUEUE, "x4", tagged(world, "A"))
    missed = tagged(world, "A")
    world.did("x4", CommitValue("f", QUEUE, missed.offset + 1, "x4"))


def _takes_over(world: ExactDelivery, committed: int, first: int) -> None:
    """Inject a takeover: a new group's second member gets one offset, and its listener starts at another."""
    stored = world.queue(QUEUE)
    world.did("x3", AssignValue("new", "x3", (QUEUE,)))
    consumed(world, "new", QUEUE, "x3", *stored[:committed])
    world.did("x3", CommitValue("new", QUEUE, committed, "x3"))
    world.did("x3", AssignValue("new", "x3", (), left=True))
    world.did("x4", QueryValue("new", QUEUE, client="x4"), QueryValue(offset=committed))
    world.did("x4", AssignValue("new", "x4", (QUEUE,)))
    consumed(world, "new", QUEUE, "x4", *stored[first:])


def _begins_too_low(world: ExactDelivery) -> None:
    _takes_over(world, 3, 2)


def _begins_too_high(world: ExactDelivery) -> None:
    _takes_over(world, 3, 4)


INJECTED: Final = (
    Injected("C06", "offset-forgotten", _forgets_offset),
    Injected("C06", "less-than-two-commits-at-a-time", _less_than_either),
    Injected("C06", "older-offset-committed", _commits_less),
    Injected("C06", "older-offset-committed-without-the-queue", _commits_less_without_the_queue),
    Injected("C06", "begins-below-what-is-committed", _begins_too_low),
    Injected("C07", "sent-to-minimum", _to_minimum),
    Injected("C07", "sent-to-minimum-from-beyond", _from_beyond_to_minimum),
    Injected("C07", "minus-one-committed", _commits_nothing),
    Injected("C08", "unread-committed", _commits_unread),
    Injected("C08", "begins-above-what-is-committed", _begins_too_high),
    Injected("C08", "selected-and-unread-committed", _commits_selected_unread),
)
