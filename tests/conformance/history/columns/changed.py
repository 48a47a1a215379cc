"""Healthy histories with a few changed lines: other values, messages, outcomes and times, and faults."""

import random
from itertools import cycle
from typing import Any

from msgspec.structs import replace

from mqproof.conformance.history import lines
from mqproof.conformance.history.lines import FaultValue, Line, Type
from tests.conformance.history.columns.healthy import BOUND, UNBOUND, healthy

_SETUPS = (
    *[BOUND] * 9,
    UNBOUND,
    replace(BOUND, visible_within_ms=0),
    replace(BOUND, lag_max_ms=10),
)


def changed(seed: int) -> list[Line]:
    """Return a history without gaps; each seed gives another one."""
    chance = random.Random(seed)
    world = healthy(seed, 10, chance.choice(_SETUPS))
    change = _Changes(chance, [*world.queues], chance.choice((0.001, 0.003, 0.01)))
    kinds = cycle(("kill", "start", "crash_os", "start", "promote"))
    found, time = list[Line](), 0
    for line in world.lines:
        time = max(time, line.time)
        found.append(replace(change.line(line), index=len(found), time=time))
        time = max(time, found[-1].time)
        if chance.random() < 0.002:
            value = FaultValue(next(kinds), "n")
            found.append(lines.Fault(len(found), time, "nemesis", Type.INFO, value))
    return found


class _Changes:
    def __init__(self, chance: random.Random, queues: list[str], rate: float) -> None:
        self.chance, self.queues, self.rate = chance, queues, rate

    def line(self, line: Line) -> Line:
        if isinstance(line, lines.Setup) or self.chance.random() > self.rate:
            return line
        if line.type is Type.OK and self.chance.random() < 0.15:
            error = self.chance.choice(["", "TOPIC_NOT_EXIST"])
            return replace(line, type=self.chance.choice([Type.FAIL, Type.INFO]), error=error)
        if self.chance.random() < 0.1:
            return replace(line, time=line.time + 1_000_000_000)
        value: Any = line.value
        name = self.chance.choice(value.__struct_fields__)
        return replace(line, value=replace(value, **{name: self.of(name, getattr(value, name))}))

    def of(self, name: str, value: Any) -> Any:
        """Return another value of a field, or the same."""
        pick = self.chance.choice
        match name:
            case "queue" if value:
                return pick(self.queues)
            case "offset" | "next" | "max" | "min":
                return max(-1, value + pick((-3, -2, -1, 1, 2, 3)))
            case "offset_id":
                return pick([f"{pick(self.queues)}#{self.chance.randrange(4)}", ""])
            case "id":
                return f"m{self.chance.randrange(1, 50)}"
            case "reset" | "seek" | "left":
                return not value
            case "status" if value:
                return pick(["SEND_OK", "FLUSH_DISK_TIMEOUT"])
            case "messages" if value:
                return self.messages(value)
            case "body" | "tag" | "key":
                return pick(["A", "B", ""])
            case "born" | "stored" | "deliver_at":
                return pick([0, value + 1, value + 10**7, max(0, value - 10**7)])
            case "times" | "attempts":
                return value + 1
            case "client":
                return pick(["g0", "g1", "b1", "b2", "c0", ""])
            case "group":
                return pick("gfocbd")
            case "node":
                return pick(["n1", "n2"])
        return value

    def messages(self, messages: tuple[Any, ...]) -> tuple[Any, ...]:
        """Leave one out, repeat it, reverse all, or change a field of one."""
        at, what = self.chance.randrange(len(messages)), self.chance.random()
        message = messages[at]
        if what < 0.15:
            return messages[:at] + messages[at + 1 :]
        if what < 0.25:
            return (*messages[:at], message, *messages[at:])
        if what < 0.35:
            return messages[::-1]
        name = self.chance.choice(message.__struct_fields__)
        other = replace(message, **{name: self.of(name, getattr(message, name))})
        return (*messages[:at], other, *messages[at + 1 :])
