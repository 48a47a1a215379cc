"""A broker and a consumer as a target for behaviours of Selection.

The broker's processor answers each pull when the script says so. The consumer is complete. It pulls when the
script says so, because it is suspended in between. A message is stored in the log at once, and becomes
readable when a response needs it: a response that examined fewer messages is one that came earlier. Two tags
of the model with one hash code are tags whose hash codes are equal in Java.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.json_values import plain
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects.stepped.delayed_requests import Held, at_rest
from mqproof.conformance.subjects.stepped.one_queue_broker import PartialServices
from mqproof.conformance.subjects.stepped.replicating_pair import Node
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.conformance.subjects.stepped.untimed_consumer import GROUP, QUEUE, SteppedMember, offset_answer
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.processors import pull
from mqproof.impl.broker.services import Services
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import PullRequest, PullResponse
from mqproof.impl.remoting.message import TAGS, UNIQUE_KEY, Message
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, inline
from mqproof.impl.runtime.simulated_loop import ManualClock
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.dispatch import Appended
from mqproof.reference.selection import NO_ANSWER, NO_PULL, Answer, Config, Pull, passes

T = TypeVar("T")

_EQUAL_HASHES: Final = ("AaAa", "AaBB", "BBAa", "BBBB")
"""Texts with one hash code in Java."""
_PAUSE_S: Final = 5.0
"""A consumer pulls again after an error within this time."""


class _Member(SteppedMember):
    """The consumer, with the places of the messages that its listener received."""

    def __init__(self, runtime: Runtime, batch_max: int) -> None:
        self.received: set[int] = set()
        limits = PullLimits(batch=batch_max)
        super().__init__("c", ["c"], runtime, self._listen, PushConsumerConfig(limits=limits))

    async def _listen(self, messages: Sequence[ReceivedMessage]) -> None:
        self.received |= {message.queue_offset + 1 for message in messages}

    @property
    def pulled(self) -> Held | None:
        return self.under_way(RequestCode.PULL_MESSAGE)

    async def begin(self, expression: str) -> None:
        """Own the queue, and do not pull yet."""
        await self.consumer.start()
        self.consumer.suspend()
        await self.consumer.subscribe(QUEUE.topic, expression)
        self.assigned_queues = [QUEUE]
        await self.rebalance()

    async def pull(self) -> None:
        """Send one pull. After an error it comes when the pause of the consumer is over."""
        self.consumer.resume()
        await at_rest()
        if self.pulled is None:
            await asyncio.sleep(_PAUSE_S)
            await at_rest()
        self.consumer.suspend()

    def at_once(self, request: Command) -> Command | None:
        """Answer offset requests immediately, too."""
        return offset_answer(request) or super().at_once(request)


class SteppedSelection:
    """Drives a broker and a consumer through a behaviour of Selection.

    Names of variables and actions are those of Selection.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._is_last = script.disabled_at == len(script.steps)
        self._config: Config = bounded("Selection", script.configuration)
        equal = dict(zip(self._config.colliding, _EQUAL_HASHES, strict=False))
        self._tag_of = {tag: equal.get(tag, tag) for tag in self._config.tags}
        self._loop = StepLoop("mqproof.impl.client")
        self._run = self._loop.run
        self._handle = self._broker()
        self._queue: list[str] = []
        self._appended: list[Appended] = []
        self._answer = NO_ANSWER
        self._response: Command | None = None
        self._member = _Member(self._loop.runtime, self._config.batch_max)
        self._wanted = list(script.initial["wanted"])
        self._run(self._member.begin(self._text(self._wanted)))

    def take(self, at: int) -> None:
        step = self._steps[at]
        _ACTIONS[step.action](self, *step.parameters)

    def look(self) -> Variables:
        pulled = self._pull()
        shown = {
            "queue": list(self._queue),
            "wanted": sorted(self._wanted),
            "pull": plain(pulled),
            "answer": plain(self._answer),
            "received": sorted(self._member.received),
        }
        return shown if pulled == NO_PULL else {**shown, "position": pulled.start - 1}

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        return tried is not None and bool(tried(self, *step.parameters))

    def close(self) -> None:
        self._loop.close()

    # Actions

    def _store(self, tag: str) -> None:
        properties = {UNIQUE_KEY: f"m{len(self._queue) + 1}"}
        if tag:
            properties[TAGS] = self._tag_of[tag]
        self._appended.append(self._node.running().append(Message(QUEUE.topic, b".", properties, queue_id=0)))
        self._queue.append(tag)

    def _subscribe(self, expression: Sequence[str]) -> None:
        self._run(self._member.consumer.subscribe(QUEUE.topic, self._text(expression)))
        self._wanted = list(expression)

    def _begin_pull(self) -> None:
        self._run(self._member.pull())
        if self._member.pulled is None:
            raise DeviationError("the consumer does not pull")

    def _give_answer(self, last: int) -> None:
        response = self._answered(last)
        if response is None:
            raise DeviationError(f"the pull is held, although there is a message at {last}")
        header = headers.read(PullResponse, response.fields)
        found = frozenset(stored.queue_offset + 1 for stored in read_records(response.body))
        if header.next_begin_offset != last:
            self._require_reason(header.next_begin_offset, last, found)
        self._response, self._answer = response, Answer(last + 1, found)

    def _require_reason(self, reached: int, last: int, found: frozenset[int]) -> None:
        """Raise ImpossibleError if the broker had a reason to stop elsewhere, otherwise DeviationError."""
        self._require_allowed(reached, found)
        if reached > last and self._readable() > last:
            raise ImpossibleError(f"the broker has read up to {self._readable()} before")
        if reached < last and len(found) == self._config.batch_max:
            raise ImpossibleError(f"the response is full at {reached}")
        raise DeviationError(f"the broker examined up to {reached}, {last} expected")

    def _require_allowed(self, reached: int, found: frozenset[int]) -> None:
        """Raise DeviationError if the model does not allow the answer up to this place."""
        if found != self._passing(reached) or len(found) > self._config.batch_max:
            raise DeviationError(f"the answer up to {reached} has the messages {sorted(found)}")

    def _passing(self, last: int) -> frozenset[int]:
        """Return the places of the messages that pass, from the pull's place up to this one."""
        pulled = self._pull()
        tags = enumerate(self._queue[:last], 1)
        return frozenset(i for i, tag in tags if i >= pulled.start and passes(self._config, tag, pulled.by))

    def _receive(self) -> None:
        held, response = self._member.pulled, self._response
        assert held is not None
        assert response is not None
        held.answer(response)
        self._forget()

    def _lose(self) -> None:
        held = self._member.pulled
        assert held is not None
        held.lose()
        self._forget()

    # Disabled actions

    def _refuses_answer(self, last: int) -> bool:
        """Pull where no answer up to this place is allowed.

        At the end of the queue there is no message to examine, and the broker holds the pull. If too many
        messages pass, the response is full before.
        """
        pulled = self._pull()
        if pulled == NO_PULL or self._answer != NO_ANSWER or last < pulled.start:
            return False
        if pulled.start > len(self._queue):
            if self._answered(len(self._queue)) is not None:
                raise DeviationError("the broker answered a pull at the end of the queue")
            return True
        if not self._is_last or last > len(self._queue):
            return False  # what the broker has read now, it would have read in later steps
        response = self._answered(last)
        assert response is not None, "there is a message"
        found = frozenset(stored.queue_offset + 1 for stored in read_records(response.body))
        self._require_allowed(headers.read(PullResponse, response.fields).next_begin_offset, found)
        return True

    def _refuses_pull(self) -> bool:
        """Let the consumer pull while its pull is in progress: it sends no second one."""
        before = len(self._member.requests.held)
        self._member.consumer.resume()
        self._run(at_rest())
        self._member.consumer.suspend()
        if len(self._member.requests.held) != before:
            raise DeviationError("the consumer has two pulls in progress")
        return True

    def _refuses_subscription(self, expression: Sequence[str]) -> bool:
        """Subscribe once more with the same expression."""
        if sorted(expression) != sorted(self._wanted):
            return False
        self._subscribe(expression)
        return True

    # Helper methods

    def _broker(self) -> Any:
        self._node = Node(FlushMode.ASYNC_FLUSH, follows=False)
        self._node.start()
        services = PartialServices(
            BrokerConfig(name=QUEUE.broker_name),
            Runtime(ManualClock(), self._node.disk, SimulatedNetwork(), random.Random(0), inline),
            self._node.store,
            {QUEUE.topic: TopicConfig(QUEUE.topic, read_queue_nums=1, write_queue_nums=1)},
            {GROUP: SubscriptionGroup(group_name=GROUP)},
            self._node.offsets,
        )
        return handler({RequestCode.PULL_MESSAGE: partial(pull.pull_message, cast(Services, services))})

    def _answered(self, last: int) -> Command | None:
        """Make the messages up to `last` readable, and answer the pull; None if the broker holds it."""
        held = self._member.pulled
        assert held is not None
        if last > self._readable():
            self._node.running()._dispatcher.run(self._appended[last - 1].end)

        async def process() -> Command | None:
            reply = self._handle(held.request, cast(Channel, _TAKES))
            if reply is None or isinstance(reply, Command):
                return reply
            waiting = asyncio.ensure_future(reply)
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            return None

        return self._run(process())

    def _readable(self) -> int:
        return self._node.running().max_offset(QUEUE.topic, QUEUE.queue_id)

    def _pull(self) -> Pull:
        held = self._member.pulled
        if held is None:
            return NO_PULL
        header = headers.read(PullRequest, held.request.fields)
        return Pull(header.queue_offset + 1, self._expression(header.subscription or ""))

    def _forget(self) -> None:
        self._response, self._answer = None, NO_ANSWER
        self._run(at_rest())

    def _text(self, expression: Sequence[str]) -> str:
        if set(expression) == set(self._config.tags):
            return "*"
        return " || ".join(self._tag_of[tag] for tag in expression)

    def _expression(self, text: str) -> frozenset[str]:
        if text == "*":
            return frozenset(self._config.tags)
        names = {real: tag for tag, real in self._tag_of.items()}
        return frozenset(names[part.strip()] for part in text.split("||"))


class _Takes:
    """A connection of a client that reads what it receives."""

    remote = ("127.0.0.1", 1)
    takes = True
    is_open = True


_TAKES: Final = _Takes()
_ACTIONS: Final[Mapping[str, Any]] = {
    "Store": SteppedSelection._store,
    "Subscribe": SteppedSelection._subscribe,
    "Pull": SteppedSelection._begin_pull,
    "Answer": SteppedSelection._give_answer,
    "Receive": SteppedSelection._receive,
    "Lose": SteppedSelection._lose,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "Answer": SteppedSelection._refuses_answer,
    "Pull": SteppedSelection._refuses_pull,
    "Subscribe": SteppedSelection._refuses_subscription,
}
"""Functions that try a disabled action; they return False if it could not be tried."""
