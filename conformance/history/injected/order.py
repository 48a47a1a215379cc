"""Injected anomalies: messages out of order, repeated, or left out."""

from typing import Final

from mqproof.conformance.history.exact_delivery import TOPIC, ExactDelivery
from mqproof.conformance.history.injected.parts import (
    ORDERED,
    QUEUE,
    Injected,
    consumed,
    placed,
    read,
    send,
    single,
    unknown,
    without,
)
from mqproof.conformance.history.lines import ConsumeValue, PollValue, SendValue, Type


def _skips(world: ExactDelivery) -> None:
    """Inject a poll of a new group that returns the first and third message, but not the second."""
    first, _, third = world.queue(QUEUE)[:3]
    read(world, first, third)


def _skips_between(world: ExactDelivery) -> None:
    first, _, third = world.queue(QUEUE)[:3]
    read(world, first)
    read(world, third)


def _goes_back(world: ExactDelivery) -> None:
    first, second = world.queue(QUEUE)[:2]
    answer = PollValue(messages=(second, first), next=2, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", PollValue("group of x3", QUEUE, 0), answer)


def _again_for_nothing(world: ExactDelivery) -> None:
    message = send(world)
    for _ in range(2):
        consumed(world, "r", QUEUE, "x3", message)


def _sent_in_reverse(world: ExactDelivery) -> None:
    """Inject two sends of one producer that are stored in reverse order."""
    _reversed(world, "x1", "x1")


def _overtaken(world: ExactDelivery) -> None:
    """Inject two sends of two producers that are stored in reverse order."""
    _reversed(world, "x1", "x2")


def _reversed(world: ExactDelivery, first: str, second: str) -> None:
    later, sooner = world.message(), world.message()
    at = [world.append(QUEUE, sooner), world.append(QUEUE, later)]
    for process, message, offset in ((first, later, at[1]), (second, sooner, at[0])):
        answer = SendValue(status="SEND_OK", queue=QUEUE, offset=offset)
        world.did(process, SendValue(TOPIC, (message,)), answer)
    for offset in at:
        read(world, world.queue(QUEUE)[offset])


def _torn_batch(world: ExactDelivery) -> None:
    batch = world.message(), world.message()
    at = world.append(QUEUE, batch[0])
    world.did("x1", SendValue(TOPIC, batch), SendValue(status="SEND_OK", queue=QUEUE, offset=at))
    between = unknown(world)
    read(world, placed(batch[0], at), placed(between, at + 1), placed(batch[1], at + 2))


def _torn_unanswered_batch(world: ExactDelivery) -> None:
    batch = world.message(), world.message()
    world.did("x2", SendValue(TOPIC, batch), SendValue(), Type.INFO, "timed out")
    end = len(world.queue(QUEUE))
    read(world, placed(batch[0], end), placed(unknown(world), end + 1))


def _key_out_of_order(world: ExactDelivery) -> None:
    first, second = (send(world, ORDERED, key="kx") for _ in range(2))
    consumed(world, "o", ORDERED, "o1", second)
    consumed(world, "o", ORDERED, "o1", first)


def _not_broadcast(world: ExactDelivery) -> None:
    message = single(world)
    without(world, message.id, lambda line: str(line.process).startswith("b1"))


def _wrong_tag(world: ExactDelivery) -> None:
    other = next(message for message in world.queue(QUEUE) if message.tag == "B")
    answer = PollValue(messages=(other,), next=other.offset + 1, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", PollValue("f", QUEUE, other.offset, seek=True), answer)


def _withheld(world: ExactDelivery) -> None:
    right = next(message for message in world.queue(QUEUE) if message.tag == "A")
    answer = PollValue(next=right.offset + 1, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", PollValue("f", QUEUE, right.offset, seek=True), answer)


def _failed_call_overtaken(world: ExactDelivery) -> None:
    first, second = (send(world, ORDERED) for _ in range(2))
    value = ConsumeValue("o", ORDERED, "o0", (first,))
    world.did("o0:late", value, value, Type.FAIL)
    consumed(world, "o", ORDERED, "o0", second)
    consumed(world, "o", ORDERED, "o0", first)


INJECTED: Final = (
    Injected("A07", "delivered-twice", _again_for_nothing),
    Injected("A09", "offset-skipped-in-poll", _skips),
    Injected("A09", "offset-skipped-between-polls", _skips_between),
    Injected("A10", "poll-goes-back", _goes_back),
    Injected("A11", "sends-reversed", _sent_in_reverse, frozenset({"L01"})),
    Injected("A12", "batch-torn", _torn_batch),
    Injected("A12", "unanswered-batch-torn", _torn_unanswered_batch),
    Injected("A13", "key-out-of-order", _key_out_of_order),
    Injected("A13", "failed-call-overtaken", _failed_call_overtaken),
    Injected("C14", "wrong-tag", _wrong_tag),
    Injected("C14", "right-tag-withheld", _withheld),
    Injected("C15", "broadcast-missed", _not_broadcast),
    Injected("L01", "overtaken", _overtaken),
)
