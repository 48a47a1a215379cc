"""Injected anomalies: messages at wrong places, or altered."""

from typing import Final

from msgspec.structs import replace

from mqproof.conformance.history.exact_delivery import MS, TOPIC, ExactDelivery
from mqproof.conformance.history.injected.parts import (
    ORDERED,
    OTHER,
    QUEUE,
    Injected,
    given_again,
    placed,
    read,
    send,
    single,
    unknown,
)
from mqproof.conformance.history.lines import Delivered, Message, PollValue, SendValue, Type


def _phantom(world: ExactDelivery) -> None:
    read(world, Delivered("ghost", len(world.queue(QUEUE))))


def _of_another_topic(world: ExactDelivery) -> None:
    read(world, placed(unknown(world), len(world.queue(ORDERED))), queue=ORDERED)


def _refused(world: ExactDelivery) -> None:
    world.fault("kill")
    message = world.message()
    world.did("x1", SendValue(TOPIC, (message,)), SendValue(), Type.FAIL, "SYSTEM_BUSY")
    world.fault("start")
    read(world, placed(message, len(world.queue(QUEUE))))


def _at_two_places(world: ExactDelivery) -> None:
    read(world, placed(single(world), len(world.queue(QUEUE))))


def _two_messages_at_one(world: ExactDelivery) -> None:
    read(world, placed(unknown(world), 1))


def _another_at_a_freed_place(world: ExactDelivery) -> None:
    """Inject another message at a place that a crash freed and that was since assigned to another send."""
    given_again(world)
    read(world, placed(unknown(world), len(world.queue(QUEUE)) - 1))


def _replicas_differ(world: ExactDelivery) -> None:
    read(world, placed(world.queue(QUEUE)[1], 1), node="s1")
    read(world, placed(unknown(world), 1), process="x5", node="s2")


def _replicas_differ_after_a_promotion(world: ExactDelivery) -> None:
    """Inject a divergence that the promotion does not explain: the first message is read again after it."""
    read(world, world.queue(QUEUE)[1], node="s1")
    world.fault("promote")
    read(world, placed(unknown(world), 1), process="x5", node="s2")
    read(world, world.queue(QUEUE)[1], node="s1")


def _two_answers_one_place(world: ExactDelivery) -> None:
    message = send(world)
    world.queue(QUEUE).pop()
    send(world, process="x2")
    read(world, message)


def _hole(world: ExactDelivery) -> None:
    end = len(world.queue(QUEUE))
    read(world, placed(unknown(world), end + 1), offset=end)


def _from_elsewhere(world: ExactDelivery) -> None:
    message = world.queue(QUEUE)[3]
    answer = PollValue(messages=(message,), next=3, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", PollValue("group of x3", QUEUE, 2), answer)


def _of_another_queue(world: ExactDelivery) -> None:
    read(world, replace(world.queue(QUEUE)[0], queue=OTHER))


def _one_key_twice(world: ExactDelivery) -> None:
    message = Message(single(world).id, "another body")
    world.fault("kill")
    world.did("x1", SendValue(TOPIC, (message,)), SendValue(), Type.FAIL, "SYSTEM_BUSY")
    world.fault("start")


def _one_offset_id_twice(world: ExactDelivery) -> None:
    read(world, replace(world.queue(QUEUE)[1], offset_id=f"{QUEUE}#0"))


def _changed(world: ExactDelivery) -> None:
    read(world, replace(single(world), body="changed"))


def _tag_changed(world: ExactDelivery) -> None:
    read(world, replace(single(world), tag="C"))


def _stored_out_of_time(world: ExactDelivery) -> None:
    message = send(world)
    read(world, replace(message, stored=message.stored - 10_000 * MS, born=0))


def _born_too_late(world: ExactDelivery) -> None:
    message = send(world)
    read(world, replace(message, born=message.stored + 10 * MS))


INJECTED: Final = (
    Injected("A04", "unsent-message", _phantom),
    Injected("A04", "refused-message", _refused),
    Injected("A04", "message-of-another-topic", _of_another_topic),
    Injected("A06", "message-at-two-places", _at_two_places),
    Injected("A08", "two-messages-at-one-place", _two_messages_at_one),
    Injected("A08", "another-at-a-freed-place", _another_at_a_freed_place, frozenset({"A02"})),
    Injected("C01", "two-answers-one-place", _two_answers_one_place, frozenset({"A02"})),
    Injected("C04.1", "hole-in-queue", _hole),
    Injected("C04.2", "message-from-elsewhere", _from_elsewhere, frozenset({"A09"})),
    Injected("C04.2", "message-of-another-queue", _of_another_queue),
    Injected("C05", "replicas-differ", _replicas_differ),
    Injected("C05", "replicas-differ-after-a-promotion", _replicas_differ_after_a_promotion),
    Injected("C16", "one-key-two-messages", _one_key_twice),
    Injected("C16", "one-offset-id-two-places", _one_offset_id_twice),
    Injected("C17", "body-changed", _changed),
    Injected("C17", "tag-changed", _tag_changed),
    Injected("C18", "stored-out-of-time", _stored_out_of_time),
    Injected("C18", "born-after-stored", _born_too_late),
)
