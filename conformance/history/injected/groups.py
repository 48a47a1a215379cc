"""Injected anomalies: queues with two owners or none, and orderly consumption that overlaps or stalls."""

from typing import Final

from mqproof.conformance.history.exact_delivery import ExactDelivery
from mqproof.conformance.history.injected.parts import ORDERED, OTHER, QUEUE, Injected, consumed, read, send
from mqproof.conformance.history.lines import AssignValue, BoundsValue, ConsumeValue


def _two_owners(world: ExactDelivery) -> None:
    for name in ("x3", "x5"):
        world.did(name, AssignValue("new", name, (QUEUE,)))
    world.wait(6000)
    world.did("x3", AssignValue("new", "x3", (), left=True))


def _no_owner(world: ExactDelivery) -> None:
    world.did("x3", AssignValue("new", "x3", (QUEUE, OTHER)))
    world.did("x3", AssignValue("new", "x3", (QUEUE,)))
    world.wait(6000)
    world.did("x5", AssignValue("new", "x5", (OTHER,)))


def _overlapping(world: ExactDelivery) -> None:
    world.wait(40_000)  # long enough that no lock exists that a restarted broker forgot
    first, second = (send(world, ORDERED) for _ in range(2))
    world.begin("o0", ConsumeValue("o", ORDERED, "o0", (first,)))
    consumed(world, "o", ORDERED, "x5", second)
    world.end("o0", ConsumeValue("o", ORDERED))


def _two_lanes_after_a_restart(world: ExactDelivery) -> None:
    """Inject an overlap of two calls of one member; a lock that its broker forgot does not explain it."""
    first, second = (send(world, ORDERED) for _ in range(2))
    world.fault("kill")
    world.fault("start")
    world.begin("o0", ConsumeValue("o", ORDERED, "o0", (first,)))
    world.did("x5", ConsumeValue("o", ORDERED, "o0", (second,)))
    world.end("o0", ConsumeValue("o", ORDERED))


def _stands_still(world: ExactDelivery) -> None:
    message = send(world, ORDERED)
    read(world, message, queue=ORDERED)
    world.wait(120_000)
    world.did("x4", BoundsValue(ORDERED), BoundsValue(min=0, max=len(world.queue(ORDERED))))


INJECTED: Final = (
    Injected("C09", "two-owners", _two_owners),
    Injected("C09", "no-owner", _no_owner),
    Injected("C10.1", "orderly-overlap", _overlapping),
    Injected("C10.1", "orderly-overlap-of-one-member", _two_lanes_after_a_restart),
    Injected("C10.2", "orderly-queue-stands-still", _stands_still),
)
