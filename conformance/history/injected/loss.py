"""Injected anomalies: messages that are lost or not visible in time."""

from typing import Final

from mqproof.conformance.history.exact_delivery import LATER, ExactDelivery
from mqproof.conformance.history.injected.parts import (
    QUEUE,
    Injected,
    answered_with,
    read,
    send,
    single,
    without,
)
from mqproof.conformance.history.lines import BoundsValue, DrainValue, SendValue


def _lost(world: ExactDelivery) -> None:
    without(world, single(world).id)


def _lost_weakly(world: ExactDelivery) -> None:
    message = single(world)
    answered_with(world, message.offset, "FLUSH_DISK_TIMEOUT")
    without(world, message.id)


def _not_read(world: ExactDelivery) -> None:
    send(world)


def _not_drained(world: ExactDelivery) -> None:
    world.did("x1", SendValue(LATER, (world.message(),)), SendValue(status="SEND_OK"))
    world.did("x4", DrainValue("d", (LATER,)))


def _cut_off(world: ExactDelivery) -> None:
    world.did("x4", BoundsValue(QUEUE), BoundsValue(min=0, max=len(world.queue(QUEUE)) - 1))


def _flickers(world: ExactDelivery) -> None:
    last = world.queue(QUEUE)[-1]
    read(world, last)
    _cut_off(world)
    read(world, last, process="x5")


def _not_visible(world: ExactDelivery) -> None:
    last = send(world)
    world.wait(2000)
    read(world, offset=last.offset, end=last.offset)
    read(world, last, process="x5")


def _back_again(world: ExactDelivery) -> None:
    last = world.queue(QUEUE)[-1]
    _cut_off(world)
    world.fault("kill")
    world.fault("start")
    read(world, last)


def _behind(world: ExactDelivery) -> None:
    world.wait(120_000)
    read(world, world.queue(QUEUE)[0])


INJECTED: Final = (
    Injected("A01", "message-lost", _lost),
    Injected("A02", "message-not-read", _not_read),
    Injected("A03", "message-not-drained", _not_drained),
    Injected("A14", "end-flickers", _flickers),
    Injected("A14", "not-visible-in-time", _not_visible),
    Injected("A15", "poll-far-behind", _behind),
    Injected("C02", "queue-cut-off", _cut_off),
    Injected("C03", "tail-resurrected", _back_again),
    Injected("C19", "weak-status-lost", _lost_weakly),
)
