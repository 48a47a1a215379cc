"""One anomaly put into a clean history: what each rule must find, and what it must not be alone to notice.

A check that cannot fail is a defect, so every rule has at least one entry here; `also` names the rules that
see the same thing from another side, and may say so.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from conformance.history import lines
from conformance.history.lines import (
    AckValue,
    AssignValue,
    BoundsValue,
    CommitValue,
    ConsumeValue,
    DrainValue,
    Handed,
    Line,
    Message,
    PollValue,
    PopValue,
    QueryValue,
    RecallValue,
    SendValue,
    Type,
)
from conformance.history.perfect import DEAD, LATER, MS, ORDERS, TOPIC, Perfect

QUEUE: Final = f"{TOPIC}/b/0"
ORDERED: Final = f"{ORDERS}/b/0"
_OTHER: Final = f"{TOPIC}/b/1"


class Planted(NamedTuple):
    """`plant` changes a history of `perfect.clean`."""

    rule: str
    name: str
    plant: Callable[[Perfect], None]
    also: frozenset[str] = frozenset()


# What the plants are made of.


def _send(world: Perfect, queue: str = QUEUE, process: str = "x1", key: str = "", **told: str) -> Handed:
    """A message at the queue's end, acknowledged."""
    message = world.message(key=key)
    offset = world.append(queue, message)
    answer = SendValue(status=told.get("status", "SEND_OK"), queue=queue, offset=offset)
    world.did(process, SendValue(queue.partition("/")[0], (message,)), answer)
    return world.queue(queue)[offset]


def _unknown(world: Perfect, topic: str = TOPIC) -> Message:
    """A message that perhaps was sent."""
    message = world.message()
    world.did("x2", SendValue(topic, (message,)), SendValue(), Type.INFO, "timed out")
    return message


def _at(message: Message | Handed, offset: int) -> Handed:
    return Handed(message.id, offset, message.body, message.tag, message.key)


def _read(
    world: Perfect, *messages: Handed, queue: str = QUEUE, process: str = "x3", asked: int | None = None,
    end: int | None = None, node: str = "",
) -> None:  # fmt: skip
    """A group of its own polls these messages."""
    first = messages[0].offset if asked is None else asked
    after = messages[-1].offset + 1 if messages else first
    end = max(after, len(world.queue(queue))) if end is None else end
    answer = PollValue(messages=messages, next=after, min=0, max=end, node=node)
    world.did(process, PollValue(f"group of {process}", queue, first), answer)


def _consumed(world: Perfect, group: str, queue: str, process: str, *messages: Handed) -> None:
    value = ConsumeValue(group, queue, process, messages)
    world.did(process, value)


def _without(world: Perfect, id_: str, only: Callable[[Line], bool] = lambda _: True) -> None:
    """Nobody is handed that message, or nobody of those lines."""

    def change(line: Line) -> Line:
        messages = getattr(line.value, "messages", ())
        if isinstance(line, lines.Send) or not any(m.id == id_ for m in messages) or not only(line):
            return line
        left = tuple(message for message in messages if message.id != id_)
        value: Any = line.value
        return replace(line, value=replace(value, messages=left))

    world.edit(change)


def _status(world: Perfect, offset: int, status: str) -> None:
    def change(line: Line) -> Line:
        if isinstance(line, lines.Send) and (line.value.queue, line.value.offset) == (QUEUE, offset):
            return replace(line, value=replace(line.value, status=status))
        return line

    world.edit(change)


def _single(world: Perfect, queue: str = QUEUE) -> Handed:
    """A message in the middle of the queue that was sent alone, and answered."""
    alone = {
        line.value.messages[0].id: line.process
        for line in world.lines
        if isinstance(line, lines.Send) and len(line.value.messages) == 1
    }
    answered = {
        line.value.offset
        for line in world.lines
        if isinstance(line, lines.Send) and line.type is Type.OK and line.value.queue == queue
    }
    able = [m for m in world.queue(queue)[1:-1] if m.id in alone and m.offset in answered]
    return able[world.chance.randrange(len(able))]


# Loss.


def _lost(world: Perfect) -> None:
    _without(world, _single(world).id)


def _lost_weakly(world: Perfect) -> None:
    message = _single(world)
    _status(world, message.offset, "FLUSH_DISK_TIMEOUT")
    _without(world, message.id)


def _not_read(world: Perfect) -> None:
    _send(world)


def _not_drained(world: Perfect) -> None:
    world.did("x1", SendValue(LATER, (world.message(),)), SendValue(status="SEND_OK"))
    world.did("x4", DrainValue("d", (LATER,)))


def _cut_off(world: Perfect) -> None:
    world.did("x4", BoundsValue(QUEUE), BoundsValue(min=0, max=len(world.queue(QUEUE)) - 1))


def _flickers(world: Perfect) -> None:
    last = world.queue(QUEUE)[-1]
    _read(world, last)
    _cut_off(world)
    _read(world, last, process="x5")


def _not_visible(world: Perfect) -> None:
    last = _send(world)
    world.wait(2000)
    _read(world, asked=last.offset, end=last.offset)
    _read(world, last, process="x5")


def _back_again(world: Perfect) -> None:
    last = world.queue(QUEUE)[-1]
    _cut_off(world)
    world.fault("kill")
    world.fault("start")
    _read(world, last)


def _behind(world: Perfect) -> None:
    world.wait(120_000)
    _read(world, world.queue(QUEUE)[0])


# Places.


def _phantom(world: Perfect) -> None:
    _read(world, Handed("ghost", len(world.queue(QUEUE))))


def _of_another_topic(world: Perfect) -> None:
    _read(world, _at(_unknown(world), len(world.queue(ORDERED))), queue=ORDERED)


def _refused(world: Perfect) -> None:
    world.fault("kill")
    message = world.message()
    world.did("x1", SendValue(TOPIC, (message,)), SendValue(), Type.FAIL, "SYSTEM_BUSY")
    world.fault("start")
    _read(world, _at(message, len(world.queue(QUEUE))))


def _at_two_places(world: Perfect) -> None:
    _read(world, _at(_single(world), len(world.queue(QUEUE))))


def _two_messages_at_one(world: Perfect) -> None:
    _read(world, _at(_unknown(world), 1))


def _another_at_a_freed_place(world: Perfect) -> None:
    """A crash may have freed it, and somebody was told since that it is his."""
    _given_again(world)
    _read(world, _at(_unknown(world), len(world.queue(QUEUE)) - 1))


def _given_again(world: Perfect) -> Handed:
    _send(world, status="FLUSH_DISK_TIMEOUT")
    world.queue(QUEUE).pop()
    world.fault("crash_os")
    world.fault("start")
    return _send(world, process="x2")


def _replicas_differ(world: Perfect) -> None:
    _read(world, _at(world.queue(QUEUE)[1], 1), node="s1")
    _read(world, _at(_unknown(world), 1), process="x5", node="s2")


def _two_answers_one_place(world: Perfect) -> None:
    message = _send(world)
    world.queue(QUEUE).pop()
    _send(world, process="x2")
    _read(world, message)


def _hole(world: Perfect) -> None:
    end = len(world.queue(QUEUE))
    _read(world, _at(_unknown(world), end + 1), asked=end)


def _from_elsewhere(world: Perfect) -> None:
    message = world.queue(QUEUE)[3]
    answer = PollValue(messages=(message,), next=3, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", PollValue("group of x3", QUEUE, 2), answer)


def _of_another_queue(world: Perfect) -> None:
    _read(world, replace(world.queue(QUEUE)[0], queue=_OTHER))


def _one_key_twice(world: Perfect) -> None:
    message = Message(_single(world).id, "another body")
    world.fault("kill")
    world.did("x1", SendValue(TOPIC, (message,)), SendValue(), Type.FAIL, "SYSTEM_BUSY")
    world.fault("start")


def _one_offset_id_twice(world: Perfect) -> None:
    _read(world, replace(world.queue(QUEUE)[1], offset_id=f"{QUEUE}#0"))


def _changed(world: Perfect) -> None:
    _read(world, replace(_single(world), body="changed"))


def _tag_changed(world: Perfect) -> None:
    _read(world, replace(_single(world), tag="C"))


def _stored_out_of_time(world: Perfect) -> None:
    message = _send(world)
    _read(world, replace(message, stored=message.stored - 10_000 * MS, born=0))


def _born_too_late(world: Perfect) -> None:
    message = _send(world)
    _read(world, replace(message, born=message.stored + 10 * MS))


# Order.


def _skips(world: Perfect) -> None:
    """A new group reads three messages, and not the one in the middle."""
    first, _, third = world.queue(QUEUE)[:3]
    _read(world, first, third)


def _skips_between(world: Perfect) -> None:
    first, _, third = world.queue(QUEUE)[:3]
    _read(world, first)
    _read(world, third)


def _goes_back(world: Perfect) -> None:
    first, second = world.queue(QUEUE)[:2]
    answer = PollValue(messages=(second, first), next=2, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", PollValue("group of x3", QUEUE, 0), answer)


def _again_for_nothing(world: Perfect) -> None:
    message = _send(world)
    for _ in range(2):
        _consumed(world, "r", QUEUE, "x3", message)


def _sent_in_reverse(world: Perfect) -> None:
    """The second send of a producer is in front of its first."""
    _reversed(world, "x1", "x1")


def _overtaken(world: Perfect) -> None:
    """So it is, of two producers."""
    _reversed(world, "x1", "x2")


def _reversed(world: Perfect, first: str, second: str) -> None:
    later, sooner = world.message(), world.message()
    at = [world.append(QUEUE, sooner), world.append(QUEUE, later)]
    for process, message, offset in ((first, later, at[1]), (second, sooner, at[0])):
        answer = SendValue(status="SEND_OK", queue=QUEUE, offset=offset)
        world.did(process, SendValue(TOPIC, (message,)), answer)
    for offset in at:
        _read(world, world.queue(QUEUE)[offset])


def _torn_batch(world: Perfect) -> None:
    batch = world.message(), world.message()
    at = world.append(QUEUE, batch[0])
    world.did("x1", SendValue(TOPIC, batch), SendValue(status="SEND_OK", queue=QUEUE, offset=at))
    between = _unknown(world)
    _read(world, _at(batch[0], at), _at(between, at + 1), _at(batch[1], at + 2))


def _torn_unanswered_batch(world: Perfect) -> None:
    batch = world.message(), world.message()
    world.did("x2", SendValue(TOPIC, batch), SendValue(), Type.INFO, "timed out")
    end = len(world.queue(QUEUE))
    _read(world, _at(batch[0], end), _at(_unknown(world), end + 1))


def _key_out_of_order(world: Perfect) -> None:
    first, second = (_send(world, ORDERED, key="kx") for _ in range(2))
    _consumed(world, "o", ORDERED, "o1", second)
    _consumed(world, "o", ORDERED, "o1", first)


def _not_broadcast(world: Perfect) -> None:
    message = _single(world)
    _without(world, message.id, lambda line: str(line.process).startswith("b1"))


def _wrong_tag(world: Perfect) -> None:
    other = next(message for message in world.queue(QUEUE) if message.tag == "B")
    answer = PollValue(messages=(other,), next=other.offset + 1, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", PollValue("f", QUEUE, other.offset, seek=True), answer)


def _withheld(world: Perfect) -> None:
    right = next(message for message in world.queue(QUEUE) if message.tag == "A")
    answer = PollValue(next=right.offset + 1, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", PollValue("f", QUEUE, right.offset, seek=True), answer)


# Offsets.


def _forgets_offset(world: Perfect) -> None:
    world.did("x3", CommitValue("new", QUEUE, 5))
    world.did("x3", QueryValue("new", QUEUE), QueryValue(offset=3))


def _commits_less(world: Perfect) -> None:
    world.did("x3", CommitValue("new", QUEUE, 5))
    world.did("x5", CommitValue("new", QUEUE, 3))


def _to_minimum(world: Perfect) -> None:
    answer = PollValue(next=0, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", PollValue("new", QUEUE, 5), answer)


def _from_beyond_to_minimum(world: Perfect) -> None:
    end = len(world.queue(QUEUE))
    world.did("x3", PollValue("new", QUEUE, end + 5), PollValue(next=0, min=0, max=end))


def _commits_nothing(world: Perfect) -> None:
    world.did("x3", CommitValue("new", QUEUE, -1))


def _commits_unread(world: Perfect) -> None:
    _read(world, *world.queue(QUEUE)[:3])
    world.did("x3", CommitValue("group of x3", QUEUE, 7))


# Groups.


def _two_owners(world: Perfect) -> None:
    for name in ("x3", "x5"):
        world.did(name, AssignValue("new", name, (QUEUE,)))
    world.wait(6000)
    world.did("x3", AssignValue("new", "x3", (), left=True))


def _no_owner(world: Perfect) -> None:
    world.did("x3", AssignValue("new", "x3", (QUEUE, _OTHER)))
    world.did("x3", AssignValue("new", "x3", (QUEUE,)))
    world.wait(6000)
    world.did("x5", AssignValue("new", "x5", (_OTHER,)))


def _overlapping(world: Perfect) -> None:
    first, second = (_send(world, ORDERED) for _ in range(2))
    world.begin("o0", ConsumeValue("o", ORDERED, "o0", (first,)))
    _consumed(world, "o", ORDERED, "x5", second)
    world.end("o0", ConsumeValue("o", ORDERED))


def _stands_still(world: Perfect) -> None:
    message = _send(world, ORDERED)
    _read(world, message, queue=ORDERED)
    world.wait(120_000)
    world.did("x4", BoundsValue(ORDERED), BoundsValue(min=0, max=len(world.queue(ORDERED))))


# Redelivery.


def _popped_too_soon(world: Perfect) -> None:
    message = world.queue(QUEUE)[-1]
    for name in ("x3", "x5"):
        world.did(name, PopValue("new", QUEUE, invisible_ms=1000), PopValue(messages=(message,)))


def _popped_after_ack(world: Perfect) -> None:
    answer = PopValue(messages=(world.queue(QUEUE)[-1],))
    world.did("x3", PopValue("new", QUEUE, invisible_ms=10), answer)
    world.did("x3", AckValue("new", QUEUE, answer.messages[0].offset))
    world.wait(100)
    world.did("x3", PopValue("new", QUEUE, invisible_ms=10), answer)


def _never_revived(world: Perfect) -> None:
    answer = PopValue(messages=(world.queue(QUEUE)[-1],))
    world.did("x3", PopValue("new", QUEUE, invisible_ms=10), answer)
    world.wait(100_000)
    world.did("x3", PopValue("new", QUEUE, invisible_ms=10), PopValue())


def _delayed(world: Perfect, milliseconds: int) -> Handed:
    message = world.message(deliver_in_ms=milliseconds)
    queue = f"{LATER}/b/0"
    world.did("x1", SendValue(LATER, (message,)), SendValue(status="SEND_OK"))
    return world.queue(queue)[world.append(queue, message)]


def _too_early(world: Perfect) -> None:
    _read(world, _delayed(world, 10_000), queue=f"{LATER}/b/0")


def _too_late(world: Perfect) -> None:
    message = _delayed(world, 10)
    world.wait(100_000)
    _read(world, message, queue=f"{LATER}/b/0")


def _never_comes(world: Perfect) -> None:
    message = world.message(deliver_in_ms=10)
    world.did("x1", SendValue(LATER, (message,)), SendValue(status="SEND_OK"))
    world.wait(100_000)
    _read(world, asked=len(world.queue(f"{LATER}/b/0")), queue=f"{LATER}/b/0")


def _comes_all_the_same(world: Perfect) -> None:
    message = _delayed(world, 10)
    world.did("x1", RecallValue(message.id))
    world.wait(20)
    _read(world, message, queue=f"{LATER}/b/0")


def _fail(world: Perfect, message: Handed, times: int) -> None:
    """The group r fails so often, each time after its delay."""
    for number in range(times):
        queue = QUEUE if not number else "%RETRY%r/b/0"
        at = message.offset if not number else 10_000 + number
        value = ConsumeValue("r", queue, "x3", (replace(message, times=number, offset=at),))
        world.did("x3", value, value, Type.FAIL)
        world.wait(50)


def _bury(world: Perfect, message: Handed) -> None:
    dead = replace(message, offset=len(world.queue(DEAD)), stored=0, offset_id="")
    world.queue(DEAD).append(dead)
    _read(world, dead, queue=DEAD)


def _dead_too_soon(world: Perfect) -> None:
    message = _send(world)
    _fail(world, message, 1)
    _bury(world, message)


def _never_dead(world: Perfect) -> None:
    message = _send(world)
    _fail(world, message, 3)
    world.did("x4", DrainValue("d", ("%DLQ%r",)))


def _too_often(world: Perfect) -> None:
    _fail(world, _send(world), 4)


def _after_death(world: Perfect) -> None:
    message = _send(world)
    _fail(world, message, 3)
    _bury(world, message)
    _consumed(world, "r", "%RETRY%r/b/0", "x3", replace(message, times=2, offset=20_000))


def _return_not_counted(world: Perfect) -> None:
    message = _send(world)
    _fail(world, message, 1)
    _consumed(world, "r", "%RETRY%r/b/0", "x3", replace(message, times=2, offset=20_000))


def _again_too_soon(world: Perfect) -> None:
    message = _send(world)
    value = ConsumeValue("r", QUEUE, "x3", (message,))
    world.did("x3", value, value, Type.FAIL)
    _consumed(world, "r", "%RETRY%r/b/0", "x3", replace(message, times=1, offset=20_000))


# Service.


def _topic_forgotten(world: Perfect) -> None:
    world.did("x1", SendValue(TOPIC, (world.message(),)), SendValue(), Type.FAIL, "TOPIC_NOT_EXIST")


def _does_not_serve(world: Perfect) -> None:
    world.wait(10_000)
    world.did("x1", SendValue(TOPIC, (world.message(),)), SendValue(), Type.FAIL, "SYSTEM_BUSY")


def _p(rule: str, name: str, plant: Callable[[Perfect], None], *also: str) -> Planted:
    return Planted(rule, name, plant, frozenset(also))


PLANTED: Final = {
    planted.name: planted
    for planted in (
        _p("A01", "message-lost", _lost),
        _p("A02", "message-not-read", _not_read),
        _p("A03", "message-not-drained", _not_drained),
        _p("A04", "message-of-nobody", _phantom),
        _p("A04", "refused-message", _refused),
        _p("A04", "message-of-another-topic", _of_another_topic),
        _p("A06", "message-at-two-places", _at_two_places),
        _p("A07", "handed-twice", _again_for_nothing),
        _p("A08", "two-messages-at-one-place", _two_messages_at_one),
        _p("A08", "another-at-a-freed-place", _another_at_a_freed_place, "A02"),
        _p("A09", "offset-skipped-in-poll", _skips),
        _p("A09", "offset-skipped-between-polls", _skips_between),
        _p("A10", "poll-goes-back", _goes_back),
        _p("A11", "sends-reversed", _sent_in_reverse, "L01"),
        _p("A12", "batch-torn", _torn_batch),
        _p("A12", "unanswered-batch-torn", _torn_unanswered_batch),
        _p("A13", "key-out-of-order", _key_out_of_order),
        _p("A14", "end-flickers", _flickers),
        _p("A14", "not-visible-in-time", _not_visible),
        _p("A15", "poll-far-behind", _behind),
        _p("C01", "two-answers-one-place", _two_answers_one_place, "A02"),
        _p("C02", "queue-cut-off", _cut_off),
        _p("C03", "tail-resurrected", _back_again),
        _p("C04.1", "hole-in-queue", _hole),
        _p("C04.2", "message-from-elsewhere", _from_elsewhere, "A09"),
        _p("C04.2", "message-of-another-queue", _of_another_queue),
        _p("C05", "replicas-differ", _replicas_differ),
        _p("C06", "offset-forgotten", _forgets_offset),
        _p("C06", "older-offset-committed", _commits_less),
        _p("C07", "sent-to-minimum", _to_minimum),
        _p("C07", "sent-to-minimum-from-beyond", _from_beyond_to_minimum),
        _p("C07", "minus-one-committed", _commits_nothing),
        _p("C08", "unread-committed", _commits_unread),
        _p("C09", "two-owners", _two_owners),
        _p("C09", "no-owner", _no_owner),
        _p("C10.1", "orderly-overlap", _overlapping),
        _p("C10.2", "orderly-queue-stands-still", _stands_still),
        _p("C11", "popped-while-invisible", _popped_too_soon),
        _p("C11", "popped-after-ack", _popped_after_ack),
        _p("C11", "popped-never-revived", _never_revived),
        _p("C12", "delayed-too-early", _too_early),
        _p("C12", "delayed-too-late", _too_late),
        _p("C12", "delayed-never-comes", _never_comes, "A02"),
        _p("C12", "recalled-and-delivered", _comes_all_the_same),
        _p("C13", "dead-too-soon", _dead_too_soon),
        _p("C13", "never-dead", _never_dead),
        _p("C13", "returned-too-often", _too_often),
        _p("C13", "comes-after-death", _after_death),
        _p("C13", "return-not-counted", _return_not_counted),
        _p("C13", "returned-too-soon", _again_too_soon),
        _p("C14", "wrong-tag", _wrong_tag),
        _p("C14", "right-tag-withheld", _withheld),
        _p("C15", "broadcast-missed", _not_broadcast),
        _p("C16", "one-key-two-messages", _one_key_twice),
        _p("C16", "one-offset-id-two-places", _one_offset_id_twice),
        _p("C17", "body-changed", _changed),
        _p("C17", "tag-changed", _tag_changed),
        _p("C18", "stored-out-of-time", _stored_out_of_time),
        _p("C18", "born-after-stored", _born_too_late),
        _p("C19", "weak-status-lost", _lost_weakly),
        _p("C20", "topic-forgotten", _topic_forgotten),
        _p("C21", "does-not-serve", _does_not_serve),
        _p("L01", "overtaken", _overtaken),
    )
}
"""By name."""
