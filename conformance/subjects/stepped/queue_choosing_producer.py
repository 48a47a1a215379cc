"""Our producer as a target for behaviours of QueueChoice.

Each attempt starts and ends when the script says so. Brokers are represented only by their answers; a tick is
five seconds of the loop's clock. An attempt of another thread is another send of the same producer to a queue
that the application chose. It does not use the round robin, and its result goes into the same table. A slow
attempt of another thread starts before the current attempt; the script is known in advance, so it can start
in time.
"""

import asyncio
from collections.abc import Mapping
from math import ceil
from typing import Any, Final, TypeVar

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError
from mqproof.conformance.subjects.stepped.delayed_requests import (
    Held,
    HeldRequests,
    at_rest,
    session,
)
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.impl.client.connection.routes import publish_queues
from mqproof.impl.client.model import MessageQueue, Outcome, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.queue_choice import LatencyLevels, Selector
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ, PERM_READ_WRITE, BrokerData, QueueData, TopicRoute
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import SendResponse
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.network import Address
from mqproof.reference.queue_choice import Config, wrap

T = TypeVar("T")

_TOPIC: Final = "T"
_TICK_MS: Final = 5000
_SLOW_S: Final = 1 / 64
"""The duration of an answer for each tick of rest that it causes.

It is short, so that many answers fit into a tick.
"""
_THRESHOLD_MS: Final = 15
_PORT: Final = 10_911
_SEND_MS: Final = 10**9


def _levels(config: Config) -> LatencyLevels:
    slow = sorted({0, *config.penalties} - {0})
    failure_ms = _THRESHOLD_MS * (max(slow, default=0) + 1)
    return LatencyLevels(
        (*(_THRESHOLD_MS * ticks for ticks in slow), failure_ms),
        tuple(_TICK_MS * ticks for ticks in (*slow, config.isolation)),
        failure_ms,
    )


class _Producer(Producer):
    """A producer that chooses a queue when the script says so.

    After a failure the choice is a separate step.
    """

    begins: "asyncio.Future[None]"

    async def _target(
        self,
        topic: str,
        last_broker: str | None,
        queue: MessageQueue | None,
        select: Selector | None,
        deadline_s: float | None = None,
    ) -> MessageQueue:
        if queue is None:
            self.begins = asyncio.get_running_loop().create_future()
            await self.begins
        return await super()._target(topic, last_broker, queue, select, deadline_s)


class SteppedProducer:
    """Drives a producer through a behaviour of QueueChoice.

    Names of variables and actions are those of QueueChoice.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._config: Config = bounded("QueueChoice", script.configuration)
        self._strategy: bool = script.initial["strategy"]
        self._writable: list[str] = script.initial["route"]
        self._loop = StepLoop()
        self._run = self._loop.run
        self._requests = HeldRequests(self._at_once)
        self._session = session(self._requests, self._loop.runtime, "client")
        self._producer = _Producer(
            self._session,
            ProducerConfig(
                send_timeout_ms=_SEND_MS,
                retries=self._config.attempts_max - 1,
                latency_fault_strategy=self._strategy,
                latency_levels=_levels(self._config),
            ),
        )
        self._producer._choice._turn = script.initial["counter"]
        self._tried: list[str] = []
        self._attempt: Held | None = None
        self._sending: asyncio.Task[Outcome] | None = None
        self._others: list[asyncio.Task[Outcome]] = []
        self._slow: dict[tuple[str, int], list[Held]] = {}
        """Attempts of other threads that started earlier."""
        self._run(self._poll())

    def take(self, at: int) -> None:
        step = self._steps[at]
        self._run(_ACTIONS[step.action](self, at, *step.parameters))

    def look(self) -> Variables:
        choice, now_s = self._producer._choice, self._loop.now_s
        route = self._session.routes.known(_TOPIC)
        assert route is not None, "there is a route from the start"
        rests_s = [choice._rested_until_s.get(broker, now_s) - now_s for broker in self._config.brokers]
        return {
            "route": sorted({queue.broker_name for queue in publish_queues(_TOPIC, route)}),
            "counter": choice._turn % wrap(self._config.broker_count, self._config.queue_count),
            "penalty": [max(0, ceil(rest_s * 1000 / _TICK_MS)) for rest_s in rests_s],
            "tried": list(self._tried),
            "waiting": self._attempt is not None,
        }

    def refuses(self, step: Stimulus) -> bool:
        """Try a disabled action. During an attempt, neither another attempt nor its end can be tried."""
        tried = _REFUSALS.get(step.action)
        if tried is None or self._sending is not None:
            return False
        could: bool = self._run(tried(self, *step.parameters))
        return could

    def close(self) -> None:
        self._loop.close()

    # A send

    async def _makes_attempt(self, at: int) -> None:
        await self._begin_slow(at)
        if self._sending is None:
            self._sending = asyncio.create_task(self._producer.send(Message(_TOPIC, b".")))
            await at_rest()
        others = set(self._requests.held)
        self._producer.begins.set_result(None)
        await at_rest()
        made = [held for held in self._requests.held if held not in others]
        if len(made) != 1:
            raise DeviationError(f"{len(made)} attempts were made")
        self._attempt = made[0]
        self._tried.append(self._broker_of(made[0]))

    async def _answered(self, _: int, ticks: int) -> None:
        await asyncio.sleep(ticks * _SLOW_S)
        await self._end(made_it=True)
        if not isinstance(self._outcome(), Sent):
            raise DeviationError("a stored message was not reported as stored")

    async def _failed(self, at: int) -> None:
        await self._end(made_it=False, busy=at % 2 == 0)
        if len(self._tried) == self._config.attempts_max and isinstance(self._outcome(), Sent):
            raise DeviationError("a message that no broker stored was reported as stored")
        if self._sending is not None and self._sending.done():
            raise DeviationError(f"the send ended after {len(self._tried)} attempts")

    async def _end(self, *, made_it: bool, busy: bool = False) -> None:
        attempt, self._attempt = self._attempt, None
        assert attempt is not None, "no attempt is in progress"
        _end(attempt, made_it=made_it, busy=busy)
        await at_rest()

    def _outcome(self) -> Outcome:
        """Return the outcome of the send that has ended."""
        assert self._sending is not None, "no send is in progress"
        if not self._sending.done():
            raise DeviationError("the send is still in progress")
        sending, self._sending = self._sending, None
        self._tried.clear()
        return sending.result()

    # Concurrent events

    async def _elsewhere(self, _: int, broker: str, ticks: int) -> None:
        if begun := self._slow.get((broker, ticks)):
            held = begun.pop(0)
        else:
            held = await self._begin_elsewhere(broker)
            if ticks in self._config.penalties:
                await asyncio.sleep(ticks * _SLOW_S)
        _end(held, made_it=ticks in self._config.penalties)
        await at_rest()

    async def _begin_slow(self, at: int) -> None:
        """Start the attempts of other threads that end late during the attempt that starts now."""
        late: list[tuple[int, str]] = []
        for step in self._steps[at + 1 :]:
            if step.action in ("Answered", "Failed"):
                break
            if step.action == "Elsewhere" and 0 < step.parameters[1] in self._config.penalties:
                late.append((step.parameters[1], step.parameters[0]))
        for ticks in range(max(late, default=(0, ""))[0], 0, -1):
            for broker in (broker for each, broker in late if each == ticks):
                self._slow.setdefault((broker, ticks), []).append(await self._begin_elsewhere(broker))
            await asyncio.sleep(_SLOW_S)

    async def _begin_elsewhere(self, broker: str) -> Held:
        sending = self._producer.send(Message(_TOPIC, b"."), MessageQueue(_TOPIC, broker, 0))
        self._others.append(asyncio.create_task(sending))
        await at_rest()
        return self._requests.held[-1]

    async def _route_changes(self, _: int, brokers: list[str]) -> None:
        self._writable = brokers
        await self._poll()

    async def _tick(self, _: int) -> None:
        await asyncio.sleep(_TICK_MS / 1000)

    async def _poll(self) -> None:
        await self._session.routes.refresh(_TOPIC)

    # Disabled actions

    async def _refuses_attempt(self) -> bool:
        """Send without a writable queue; the send must report that nothing was sent."""
        sending = asyncio.create_task(self._producer.send(Message(_TOPIC, b".")))
        await at_rest()
        self._producer.begins.set_result(None)
        await at_rest()
        if not sending.done() or isinstance(sending.result(), Sent):
            raise DeviationError("Attempt is disabled, but was executed")
        return True

    async def _refuses_elsewhere(self, broker: str, ticks: int) -> bool:
        """Make an attempt of another thread that changes nothing: without the strategy, or repeated.

        Brokers without writable queues get no sends.
        """
        if broker not in self._writable:
            return False
        await self._elsewhere(0, broker, ticks)
        return True

    async def _refuses_route(self, brokers: list[str]) -> bool:
        """Change the route to the same route."""
        await self._route_changes(0, brokers)
        return True

    async def _refuses_tick(self) -> bool:
        """Let a tick pass while no broker is avoided."""
        await self._tick(0)
        return True

    # Helper methods

    def _at_once(self, request: Command) -> Command | None:
        """Answer route queries immediately, as a name server does."""
        if request.code != RequestCode.GET_ROUTEINFO_BY_TOPIC:
            return None
        count = self._config.queue_count
        route = TopicRoute(
            [BrokerData({0: str(self._address_of(each))}, each, "cluster") for each in self._config.brokers],
            [
                QueueData(
                    each,
                    PERM_READ_WRITE if each in self._writable else PERM_READ,
                    count,
                    write_queue_nums=count,
                )
                for each in self._config.brokers
            ],
        )
        return request.answer(ResponseCode.SUCCESS, body=java_json.write(route))

    def _address_of(self, broker: str) -> Address:
        return Address("127.0.0.1", _PORT + self._config.brokers.index(broker))

    def _broker_of(self, held: Held) -> str:
        return self._config.brokers[held.address.port - _PORT]


_ACTIONS: Final[Mapping[str, Any]] = {
    "Attempt": SteppedProducer._makes_attempt,
    "Answered": SteppedProducer._answered,
    "Failed": SteppedProducer._failed,
    "Elsewhere": SteppedProducer._elsewhere,
    "RouteChanges": SteppedProducer._route_changes,
    "Tick": SteppedProducer._tick,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "Attempt": SteppedProducer._refuses_attempt,
    "Elsewhere": SteppedProducer._refuses_elsewhere,
    "RouteChanges": SteppedProducer._refuses_route,
    "Tick": SteppedProducer._refuses_tick,
}


def _end(attempt: Held, *, made_it: bool, busy: bool = False) -> None:
    """End an attempt: with success, with an answer that causes a retry, or without an answer."""
    request = attempt.request
    if made_it:
        response = SendResponse("7F00000100002A9F0000000000000000", 0, 0)
        attempt.answer(request.answer(ResponseCode.SUCCESS, headers.write(response)))
    elif busy:
        attempt.answer(request.answer(ResponseCode.SYSTEM_BUSY, remark="busy"))
    else:
        attempt.lose()
