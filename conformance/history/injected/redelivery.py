"""Injected anomalies: pops, delays, retries and dead letters that are too early, too frequent or missing."""

from typing import Final

from msgspec.structs import replace

from mqproof.conformance.history.exact_delivery import DEAD, LATER, ExactDelivery
from mqproof.conformance.history.injected.parts import QUEUE, Injected, consumed, read, send
from mqproof.conformance.history.lines import (
    AckValue,
    ConsumeValue,
    Delivered,
    DrainValue,
    PopValue,
    RecallValue,
    SendValue,
    Type,
)


def _popped_too_soon(world: ExactDelivery) -> None:
    message = world.queue(QUEUE)[-1]
    for name in ("x3", "x5"):
        world.did(name, PopValue("new", QUEUE, invisible_ms=1000), PopValue(messages=(message,)))


def _popped_after_ack(world: ExactDelivery) -> None:
    answer = PopValue(messages=(world.queue(QUEUE)[-1],))
    world.did("x3", PopValue("new", QUEUE, invisible_ms=10), answer)
    world.did("x3", AckValue("new", QUEUE, answer.messages[0].offset))
    world.wait(100)
    world.did("x3", PopValue("new", QUEUE, invisible_ms=10), answer)


def _never_revived(world: ExactDelivery) -> None:
    answer = PopValue(messages=(world.queue(QUEUE)[-1],))
    world.did("x3", PopValue("new", QUEUE, invisible_ms=10), answer)
    world.wait(100_000)
    world.did("x3", PopValue("new", QUEUE, invisible_ms=10), PopValue())


def delayed(world: ExactDelivery, milliseconds: int) -> Delivered:
    message = world.message(deliver_in_ms=milliseconds)
    queue = f"{LATER}/b/0"
    world.did("x1", SendValue(LATER, (message,)), SendValue(status="SEND_OK"))
    return world.queue(queue)[world.append(queue, message)]


def _too_early(world: ExactDelivery) -> None:
    read(world, delayed(world, 10_000), queue=f"{LATER}/b/0")


def _too_late(world: ExactDelivery) -> None:
    message = delayed(world, 10)
    world.wait(100_000)
    read(world, message, queue=f"{LATER}/b/0")


def _never_comes(world: ExactDelivery) -> None:
    message = world.message(deliver_in_ms=10)
    world.did("x1", SendValue(LATER, (message,)), SendValue(status="SEND_OK"))
    world.wait(100_000)
    read(world, offset=len(world.queue(f"{LATER}/b/0")), queue=f"{LATER}/b/0")


def _comes_all_the_same(world: ExactDelivery) -> None:
    message = delayed(world, 10)
    world.did("x1", RecallValue(message.id))
    world.wait(20)
    read(world, message, queue=f"{LATER}/b/0")


def fail(world: ExactDelivery, message: Delivered, times: int) -> None:
    """Let group r fail to consume the message this many times, each time after its delay."""
    for number in range(times):
        queue = QUEUE if not number else "%RETRY%r/b/0"
        at = message.offset if not number else 10_000 + number
        value = ConsumeValue("r", queue, "x3", (replace(message, times=number, offset=at),))
        world.did("x3", value, value, Type.FAIL)
        world.wait(50)


def bury(world: ExactDelivery, message: Delivered) -> None:
    dead = replace(message, offset=len(world.queue(DEAD)), stored=0, offset_id="")
    world.queue(DEAD).append(dead)
    read(world, dead, queue=DEAD)


def _dead_too_soon(world: ExactDelivery) -> None:
    message = send(world)
    fail(world, message, 1)
    bury(world, message)


def _never_dead(world: ExactDelivery) -> None:
    message = send(world)
    fail(world, message, 3)
    world.did("x4", DrainValue("d", ("%DLQ%r",)))


def _done_and_never_dead(world: ExactDelivery) -> None:
    """Inject a missing dead letter.

    A consumed message is delivered again after a restart and fails its last retry.
    """
    message = send(world)
    fail(world, message, 2)
    last = replace(message, times=2, offset=10_002)
    consumed(world, "r", "%RETRY%r/b/0", "x3", last)
    world.fault("kill")
    world.fault("start")
    value = ConsumeValue("r", "%RETRY%r/b/0", "x3", (last,))
    world.did("x3", value, value, Type.FAIL)
    world.did("x4", DrainValue("d", ("%DLQ%r",)))


def _never_again(world: ExactDelivery) -> None:
    fail(world, send(world), 1)
    world.wait(100_000)
    world.did("x4", DrainValue("d", ("%DLQ%r",)))


def _too_often(world: ExactDelivery) -> None:
    fail(world, send(world), 4)


def _after_death(world: ExactDelivery) -> None:
    message = send(world)
    fail(world, message, 3)
    bury(world, message)
    consumed(world, "r", "%RETRY%r/b/0", "x3", replace(message, times=2, offset=20_000))


def _return_not_counted(world: ExactDelivery) -> None:
    message = send(world)
    fail(world, message, 1)
    consumed(world, "r", "%RETRY%r/b/0", "x3", replace(message, times=2, offset=20_000))


def _again_too_soon(world: ExactDelivery) -> None:
    message = send(world)
    value = ConsumeValue("r", QUEUE, "x3", (message,))
    world.did("x3", value, value, Type.FAIL)
    consumed(world, "r", "%RETRY%r/b/0", "x3", replace(message, times=1, offset=20_000))


INJECTED: Final = (
    Injected("C11", "popped-while-invisible", _popped_too_soon),
    Injected("C11", "popped-after-ack", _popped_after_ack),
    Injected("C11", "popped-never-revived", _never_revived),
    Injected("C12", "delayed-too-early", _too_early),
    Injected("C12", "delayed-too-late", _too_late),
    Injected("C12", "delayed-never-comes", _never_comes, frozenset({"A02"})),
    Injected("C12", "recalled-and-delivered", _comes_all_the_same),
    Injected("C13", "dead-too-soon", _dead_too_soon),
    Injected("C13", "never-dead", _never_dead),
    Injected("C13", "done-and-never-dead", _done_and_never_dead),
    Injected("C13", "returned-too-often", _too_often),
    Injected("C13", "comes-after-death", _after_death),
    Injected("C13", "return-not-counted", _return_not_counted),
    Injected("C13", "returned-too-soon", _again_too_soon),
    Injected("C13", "failed-and-never-again", _never_again),
)
