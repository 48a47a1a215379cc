"""A broker and the consumers of a group as a target for behaviours of Group.

Each request of the consumers is answered, or lost, when the script says so. The broker and its producers are
those of Delivery (`one_queue_broker`). A consumer that stops reading a queue commits a last offset, which is
lost here: in the model this commit is a step of its own. The listener accepts every message.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects.stepped.delayed_requests import Held, at_rest
from mqproof.conformance.subjects.stepped.one_queue_broker import SERVICE, Service
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.conformance.subjects.stepped.untimed_consumer import QUEUE, SteppedMember, killed
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import PullRequest
from mqproof.impl.runtime.runtime import Runtime
from mqproof.reference.delivery import PASSED
from mqproof.reference.group import IDLE, Config

_CONFIG: Final = PushConsumerConfig(
    consume_from=ConsumeFrom.FIRST_OFFSET, limits=PullLimits(batch=1), concurrency=1
)
_OFFSETS: Final = (RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.UPDATE_CONSUMER_OFFSET)


class _Member(SteppedMember):
    """A consumer with the messages delivered to it."""

    def __init__(self, name: str, everybody: Sequence[str], runtime: Runtime) -> None:
        self.delivered: list[ReceivedMessage] = []
        super().__init__(name, everybody, runtime, self._listen, _CONFIG)

    async def _listen(self, messages: Sequence[ReceivedMessage]) -> None:
        self.delivered += messages

    @property
    def position(self) -> int:
        """The offset from which it pulls."""
        pull = self.under_way(RequestCode.PULL_MESSAGE)
        return IDLE if pull is None else headers.read(PullRequest, pull.request.fields).queue_offset


class SteppedConsumers:
    """Drives a broker and consumers through a behaviour of Group.

    Names of variables and actions are those of Group.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._states = [state["service"] for state in script.states()]
        self._now = 0
        config: Config = bounded("Group", script.configuration)
        self._loop = StepLoop("mqproof.impl.client")
        self._run = self._loop.run
        self._service = Service(config.service, script.steps, self._states, self._loop)
        self._names = config.consumers
        self._members = {name: self._started(name) for name in self._names}
        self._assigned: str = script.initial["assigned"][0]
        self._seen: list[str] = []

    def take(self, at: int) -> None:
        step = self._steps[at]
        self._now = at + 1
        _ACTIONS[step.action](self._service if step.action in SERVICE else self, at, *step.parameters)

    def look(self) -> Variables:
        """Return the variables; those of the service that cannot be observed are taken from the model."""
        service = {**self._states[self._now], **self._service.shown(), "seen": [list(self._seen)]}
        return {
            "service": service,
            "assigned": [self._assigned],
            "position": [[member.position] for member in self._members.values()],
        }

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        if tried is None or not self._service.is_up:
            return False
        could: bool = tried(self, *step.parameters)
        return could

    def close(self) -> None:
        self._loop.close()

    # Changes of the assignment

    def _rebalance(self, _: int, queue: str, name: str) -> None:
        """Record the assignment; no member knows it yet."""
        del queue
        self._assigned = name

    def _start(self, _: int, name: str, queue: str) -> None:
        del queue
        member = self._members[name]
        member.assigned_queues = [QUEUE]
        self._run(member.rebalance())
        self._serve(member)
        if not member.is_reading:
            raise DeviationError(f"{name} does not read its queue")

    def _deliver(self, _: int, name: str, queue: str) -> None:
        del queue
        member = self._members[name]
        place = member.position + 1
        self._service.ready(place)
        if not self._pulled(member):
            raise DeviationError(f"there is nothing to read at {place}")
        received = member.delivered.pop()
        self._seen += [PASSED] * (received.queue_offset - len(self._seen))
        self._seen[received.queue_offset : received.queue_offset + 1] = [received.message_id]

    def _commit_offset(self, at: int, name: str, queue: str) -> None:
        del queue
        member = self._members[name]
        if (member.consumer._offsets.get(QUEUE) or 0) < member.position:
            raise ImpossibleError(f"{name} commits the consumed offset, not the start offset")
        self._saved(member)
        self._service.noted(at)

    def _release(self, _: int, name: str, queue: str) -> None:
        del queue
        member = self._members[name]
        member.assigned_queues = []
        self._run(member.rebalance())
        self._lose_offsets(member)

    def _consumer_crash(self, _: int, name: str) -> None:
        self._run(killed(self._members[name].consumer))
        self._members[name] = self._started(name)

    # Offsets that go back

    def _reset(self, at: int, queue: str, offset: int) -> None:
        if any(IDLE < member.position < offset for member in self._members.values()):
            raise ImpossibleError("a member behind the reset offset continues at it as well")
        self._service.reset(at, queue, offset)
        for member in self._members.values():
            if member.is_reading:
                self._run(self._reset_member(member, offset))
                self._serve(member)
        del self._seen[offset:]
        self._service.noted(at)

    def _correct_offset(self, at: int, queue: str) -> None:
        del queue
        end = len(self._states[at]["queue"][0])
        self._service.ready(end)
        for name, member in self._members.items():
            if member.position > end:
                if self._pulled(member):
                    raise DeviationError(f"{name} received a message that does not exist")
                self._serve(member)
        del self._seen[end:]
        self._service.noted(at)

    # Disabled actions

    def _refuses_delivery(self, name: str, queue: str) -> bool:
        """Pull at the end of the queue: the pull must wait, since there is no message."""
        del queue
        member = self._members[name]
        if member.position != len(self._service._queue()):
            return False
        self._service.ready(member.position)
        pull = member.under_way(RequestCode.PULL_MESSAGE)
        assert pull is not None, "a member with a position has a pull in progress"
        if (
            answer := self._service.request(pull.request)
        ) is not None and answer.code == ResponseCode.SUCCESS:
            raise DeviationError(f"{name} received a message that does not exist")
        return True

    def _refuses_start(self, name: str, queue: str) -> bool:
        """Rebalance a member that does not own the queue, or already reads it."""
        del queue
        member = self._members[name]
        if member.is_reading is not (self._assigned == name):
            return False
        member.assigned_queues = [QUEUE] if member.is_reading else []
        self._run(member.rebalance())
        return True

    def _refuses_commit(self, name: str, queue: str) -> bool:
        """Commit the same offset again. A broker also accepts a lower one: docs/explanation/as-shipped.md."""
        del queue
        member = self._members[name]
        if member.consumer._offsets.get(QUEUE) != self._service._committed():
            return False
        self._saved(member)
        return True

    # Helper methods

    def _started(self, name: str) -> _Member:
        member = _Member(name, self._names, self._loop.runtime)
        self._run(member.start())
        return member

    def _pulled(self, member: _Member) -> bool:
        """Answer the member's pull; return whether that delivers a message."""
        pull = member.under_way(RequestCode.PULL_MESSAGE)
        assert pull is not None, "a reading member has a pull in progress"
        before = len(member.delivered)
        self._answer(pull)
        return len(member.delivered) > before

    def _saved(self, member: _Member) -> None:
        saving = self._loop.loop.create_task(member.consumer._offsets.save())
        self._run(at_rest())
        self._serve(member)
        assert saving.done(), "the save waits for nothing else"

    def _serve(self, member: _Member) -> None:
        """Answer the member's offset requests until there are no more."""
        while unanswered := next(
            (held for held in member.requests.held if held.request.code in _OFFSETS), None
        ):
            self._answer(unanswered)

    def _lose_offsets(self, member: _Member) -> None:
        while unanswered := next(
            (held for held in member.requests.held if held.request.code in _OFFSETS), None
        ):
            unanswered.lose()
            self._run(at_rest())

    def _answer(self, held: Held) -> None:
        answer = self._service.request(held.request)
        if answer is None:
            return  # it stays held
        held.answer(answer)
        self._run(at_rest())

    async def _reset_member(self, member: _Member, offset: int) -> None:
        member.consumer.reset_offsets(QUEUE.topic, {QUEUE: offset})
        await at_rest()


_ACTIONS: Final[Mapping[str, Any]] = {
    **SERVICE,
    "Rebalance": SteppedConsumers._rebalance,
    "Start": SteppedConsumers._start,
    "Deliver": SteppedConsumers._deliver,
    "CommitOffset": SteppedConsumers._commit_offset,
    "Release": SteppedConsumers._release,
    "ConsumerCrash": SteppedConsumers._consumer_crash,
    "Reset": SteppedConsumers._reset,
    "CorrectOffset": SteppedConsumers._correct_offset,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "Deliver": SteppedConsumers._refuses_delivery,
    "Start": SteppedConsumers._refuses_start,
    "CommitOffset": SteppedConsumers._refuses_commit,
}
"""Functions that try a disabled action; they return False if it could not be tried."""
