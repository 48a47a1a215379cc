"""Building blocks of anomalies: sends, polls and edits of a clean history."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from mqproof.conformance.history import lines
from mqproof.conformance.history.exact_delivery import ORDERS, TOPIC, ExactDelivery
from mqproof.conformance.history.lines import (
    ConsumeValue,
    Delivered,
    Line,
    Message,
    PollValue,
    SendValue,
    Type,
)

QUEUE: Final = f"{TOPIC}/b/0"
ORDERED: Final = f"{ORDERS}/b/0"
OTHER: Final = f"{TOPIC}/b/1"


class Injected(NamedTuple):
    """One anomaly; `inject` adds it into a history of `exact_delivery.clean`."""

    rule: str
    name: str
    inject: Callable[[ExactDelivery], None]
    also: frozenset[str] = frozenset()


def send(
    world: ExactDelivery, queue: str = QUEUE, process: str = "x1", key: str = "", **fields: str
) -> Delivered:
    """Append an acknowledged message to the queue."""
    message = world.message(key=key)
    offset = world.append(queue, message)
    answer = SendValue(status=fields.get("status", "SEND_OK"), queue=queue, offset=offset)
    world.did(process, SendValue(queue.partition("/")[0], (message,)), answer)
    return world.queue(queue)[offset]


def tagged(world: ExactDelivery, tag: str) -> Delivered:
    """Append acknowledged messages until one has the tag, and return it. A separate group reads them all."""
    while True:
        stored = send(world)
        read(world, stored)
        if stored.tag == tag:
            return stored


def unknown(world: ExactDelivery, topic: str = TOPIC) -> Message:
    """Return a message whose send has an unknown outcome."""
    message = world.message()
    world.did("x2", SendValue(topic, (message,)), SendValue(), Type.INFO, "timed out")
    return message


def placed(message: Message | Delivered, offset: int) -> Delivered:
    return Delivered(message.id, offset, message.body, message.tag, message.key)


def read(
    world: ExactDelivery, *messages: Delivered, queue: str = QUEUE, process: str = "x3",
    offset: int | None = None, end: int | None = None, node: str = "",
) -> None:  # fmt: skip
    """Add a poll by a separate group that returns these messages."""
    first = messages[0].offset if offset is None else offset
    after = messages[-1].offset + 1 if messages else first
    end = max(after, len(world.queue(queue))) if end is None else end
    answer = PollValue(messages=messages, next=after, min=0, max=end, node=node)
    world.did(process, PollValue(f"group of {process}", queue, first), answer)


def consumed(world: ExactDelivery, group: str, queue: str, process: str, *messages: Delivered) -> None:
    value = ConsumeValue(group, queue, process, messages)
    world.did(process, value)


def without(world: ExactDelivery, id_: str, only: Callable[[Line], bool] = lambda _: True) -> None:
    """Remove the message from all deliveries, or from those in the lines selected by `only`."""

    def change(line: Line) -> Line:
        messages = getattr(line.value, "messages", ())
        if isinstance(line, lines.Send) or not any(m.id == id_ for m in messages) or not only(line):
            return line
        left = tuple(message for message in messages if message.id != id_)
        value: Any = line.value
        return replace(line, value=replace(value, messages=left))

    world.edit(change)


def answered_with(world: ExactDelivery, offset: int, status: str) -> None:
    def change(line: Line) -> Line:
        if isinstance(line, lines.Send) and (line.value.queue, line.value.offset) == (QUEUE, offset):
            return replace(line, value=replace(line.value, status=status))
        return line

    world.edit(change)


def single(world: ExactDelivery, queue: str = QUEUE) -> Delivered:
    """Return a message in the middle of the queue that was not sent in a batch and was acknowledged."""
    unbatched = {
        line.value.messages[0].id: line.process
        for line in world.lines
        if isinstance(line, lines.Send) and len(line.value.messages) == 1
    }
    answered = {
        line.value.offset
        for line in world.lines
        if isinstance(line, lines.Send) and line.type is Type.OK and line.value.queue == queue
    }
    able = [m for m in world.queue(queue)[1:-1] if m.id in unbatched and m.offset in answered]
    return able[world.chance.randrange(len(able))]


def given_again(world: ExactDelivery) -> Delivered:
    send(world, status="FLUSH_DISK_TIMEOUT")
    world.queue(QUEUE).pop()
    world.fault("crash_os")
    world.fault("start")
    return send(world, process="x2")
