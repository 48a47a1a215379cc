"""TRACE-1 to 6: the traces of a producer and of calls of a listener, whatever the trace topic answers.

An input is a program: one byte for the number of traces that may wait, and one for each step. A step begins
or ends an operation, sends a batch of traces, stores it, or ends its send; or the client stops.
"""

import random
from collections import Counter
from collections.abc import Iterable
from typing import Final

from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.conformance.subjects.stepped.traced_client import TracedClient
from mqproof.fuzz.target import Finding
from mqproof.reference.tracing import ENDS, Trace, Traces
from mqproof.spec import catalogue

_SEEDS: Final = 16
_STEPS_MAX: Final = 60
_WAITING_MAX: Final = 4
_STOP: Final = 255
_FAILURES: Final = ("refused", "error")
_NONE: Final[Traces] = frozenset()


class _Run:
    """One client, and what it should have reported."""

    def __init__(self, loop: StepLoop, waiting_max: int, checked: Counter[str]) -> None:
        self._client = TracedClient(loop.runtime, waiting_max)
        self._waiting_max = waiting_max
        self._checked = checked
        self._sends: list[str] = []
        self._calls: list[str] = []
        self._count = 0
        self._due, self._topic, self._sent = _NONE, _NONE, _NONE

    async def play(self, steps: bytes) -> None:
        for step in steps:
            if step == _STOP:
                await self._stop()
                return
            await self._take_step(step % 8, step // 8)
            self._judge()
        await self._drain()

    async def _take_step(self, kind: int, choice: int) -> None:
        match kind:
            case 0 | 1:
                self._sends.append(self._new())
                await self._client.begin_send(self._sends[-1])
            case 2 if self._sends:
                await self._end_send(self._sends.pop(choice // 3 % len(self._sends)), ENDS[choice % 3])
            case 3:
                self._calls.append(self._new())
                self._report(self._calls[-1], "began")
            case 4 if self._calls:
                self._report(self._calls.pop(choice // 2 % len(self._calls)), ENDS[choice % 2])
            case 5:
                await self._client.take()
            case 6:
                self._topic |= self._client.batch
            case 7 if self._client.batch:
                await self._settle(choice)

    def _new(self) -> str:
        self._count += 1
        return f"m{self._count}"

    async def _end_send(self, name: str, how: str) -> None:
        if how != "refused":
            self._due |= {Trace(name, how)}
        await self._client.end_send(name, how)
        seen = self._client.outcome(name)
        never_in_the_way(name, seen, self._checked)
        result_unchanged(name, how, seen, self._checked)

    def _report(self, call: str, says: str) -> None:
        self._due |= {Trace(call, says)}
        try:
            if says == "began":
                self._client.begin_call(call)
            else:
                self._client.end_call(call, says)
        except Exception as error:  # whatever it is, the call of the listener fails with it
            raise Finding("ResultUnchanged", f"the call {call} fails: {error}") from error

    async def _settle(self, choice: int) -> None:
        batch = self._client.batch
        if choice % 2 and batch <= self._topic:
            self._sent |= batch
            await self._client.settle("stored")
        else:
            await self._client.settle(_FAILURES[choice // 2 % 2])

    async def _stop(self) -> None:
        await self._client.stop()
        self._judge()
        trace_settles(has_ended=await self._client.stopped(), checked=self._checked)
        self._judge()

    async def _drain(self) -> None:
        """Answer each batch until no trace waits."""
        while self._client.waiting or self._client.batch:
            if not self._client.batch:
                await self._client.take()
            trace_settles(has_ended=bool(self._client.batch), checked=self._checked)
            await self._settle(1)
            self._judge()

    def _judge(self) -> None:
        client = self._client
        traces_bounded(client.waiting_count, self._waiting_max, self._checked)
        trace_true(client.waiting | client.batch | self._topic, self._due, self._checked)
        lost = len(self._due - client.waiting - client.batch - self._sent)
        dropped_counted(client.dropped, lost, self._checked)


# The checks. Each raises Finding.


def result_unchanged(name: str, answer: str, seen: str, checked: Counter[str]) -> None:
    """Check TRACE-1: a send ends as the broker answered it."""
    checked["ResultUnchanged"] += 1
    if seen != answer:
        raise Finding("ResultUnchanged", f"send {name} ends as {seen}, {answer} expected")


def traces_bounded(waiting: int, waiting_max: int, checked: Counter[str]) -> None:
    """Check TRACE-2: no more traces wait than the limit allows."""
    checked["TracesBounded"] += 1
    if waiting > waiting_max:
        raise Finding("TracesBounded", f"{waiting} traces wait, at most {waiting_max} expected")


def trace_true(made: Traces, due: Traces, checked: Counter[str]) -> None:
    """Check TRACE-3: each trace states what happened."""
    checked["TraceTrue"] += bool(made)
    if wrong := sorted(made - due):
        raise Finding("TraceTrue", f"a trace says {wrong[0].says} of {wrong[0].of}")


def dropped_counted(dropped: int, lost: int, checked: Counter[str]) -> None:
    """Check TRACE-4: the counter is the number of traces that were not sent."""
    checked["DroppedCounted"] += bool(lost)
    if dropped != lost:
        raise Finding("DroppedCounted", f"{dropped} traces are counted as dropped, {lost} expected")


def never_in_the_way(name: str, seen: str, checked: Counter[str]) -> None:
    """Check TRACE-5: a send ends when its broker has answered."""
    checked["NeverInTheWay"] += 1
    if seen == "running":
        raise Finding("NeverInTheWay", f"send {name} waits after the broker has answered it")


def trace_settles(*, has_ended: bool, checked: Counter[str]) -> None:
    """Check TRACE-6: traces that wait are sent in time, and a stop ends in time."""
    checked["TraceSettles"] += 1
    if not has_ended:
        raise Finding("TraceSettles", "traces wait, and no batch is sent; or a stop does not end")


class ClientTracesTarget:
    name: Final = "client-traces"
    invariants: Final = {
        each.name: each.statement
        for each in (catalogue.catalogue()[f"TRACE-{number}"] for number in range(1, 7))
    }
    watched: Final = ("mqproof.impl.client.tracing",)
    input_bytes_max: Final = 1 + _STEPS_MAX

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()

    def seeds(self) -> Iterable[bytes]:
        chance = random.Random("client-traces")
        for number in range(_SEEDS):
            end = bytes([_STOP]) if number % 2 else b""
            yield bytes([number % _WAITING_MAX]) + chance.randbytes(_STEPS_MAX - 1) + end

    def run(self, data: bytes) -> None:
        if not data:
            return
        tested: Counter[str] = Counter()
        loop = StepLoop("mqproof.impl.client")
        try:
            loop.run(_play(loop, 1 + data[0] % _WAITING_MAX, data[1 : self.input_bytes_max], tested))
        finally:
            loop.close()
            self.checked.update(list(+tested))  # inputs are counted, not events


async def _play(loop: StepLoop, waiting_max: int, steps: bytes, checked: Counter[str]) -> None:
    await _Run(loop, waiting_max, checked).play(steps)


TARGET = ClientTracesTarget
