"""A broker and its producers as a target for behaviours of Delivery.

Messages are stored, acknowledged and lost, and the broker stops and starts, when the script says so. A
producer is represented by its requests: a send makes a few attempts, each of which arrives when it is stored,
or never. Consumers use the broker's own request processors; in Delivery, consumers are those requests.

The script determines the data that a crash leaves. Messages that it will lose are not synced before, and the
offsets that it will leave are written in time. If a queue loses its end although all promised messages must
stay, it loses only unsynced data. If promises no longer hold, its files are damaged. If it loses its end
while the broker serves, that is a crash and a restart that no client had to notice.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects.stepped.replicating_pair import LOG, TOPIC, Node
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.conformance.subjects.stepped.untimed_consumer import GROUP, QUEUE
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.processors import offset_admin, pull, queries
from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.broker.state.clients import ClientTable
from mqproof.impl.broker.state.pull_progress import PullProgress
from mqproof.impl.broker.state.statistics import Statistics
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    PULL_HAS_SUBSCRIPTION,
    PullRequest,
    PullResponse,
    ResetOffsetRequest,
    UpdateOffsetRequest,
)
from mqproof.impl.remoting.message import UNIQUE_KEY, Message
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, inline
from mqproof.impl.runtime.simulated_loop import ManualClock
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.dispatch import Appended
from mqproof.impl.store.results import PutStatus
from mqproof.reference.delivery import Config

T = TypeVar("T")

_ATTEMPTS: Final = 3
"""The number of attempts of one send; any of them may arrive, early or late."""
_PROCESSORS: Final[Mapping[int, Processor]] = {
    RequestCode.PULL_MESSAGE: pull.pull_message,
    RequestCode.QUERY_CONSUMER_OFFSET: queries.query_offset,
    RequestCode.UPDATE_CONSUMER_OFFSET: queries.update_offset,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: offset_admin.reset_offsets,
}


class Service:
    """A broker with one queue, and its producers. `states` are the script's states, as in Delivery."""

    def __init__(
        self, config: Config, steps: Sequence[Stimulus], states: Sequence[Variables], loop: StepLoop
    ) -> None:
        assert len(config.queues) == 1, "the model has one queue"
        self._config = config
        self._steps = steps
        self._states = states
        self.run = loop.run
        self._node = Node(FlushMode.SYNC_FLUSH, follows=False)
        self._disk = self._node.disk
        self._answer = dict.fromkeys(config.messages, "unsent")
        self._under_way: list[tuple[str, int]] = []
        """Attempts that have not arrived: message, and the number of its send."""
        self._sends = dict.fromkeys(config.messages, 0)
        self._stored: dict[tuple[str, int], Appended] = {}
        """(message, number of the send) to the record stored by this process."""
        self._left: int | None = None
        """The number of records that remain after a fault of the stopped broker; None if all remain."""
        self._committed_on_disk = 0
        self._start()

    @property
    def is_up(self) -> bool:
        return self._node.store is not None

    def shown(self) -> dict[str, Any]:
        """Return the service's part of Delivery's variables."""
        variables = {"answer": list(self._answer.values()), "sends": list(self._sends.values())}
        if not self.is_up:
            return variables
        return {**variables, "queue": [self._queue()], "committed": [self._committed()]}

    def request(self, request: Command) -> Command | None:
        """Return the answer of the request processors; None if it would come later."""

        async def process() -> Command | None:
            reply = self._handle(request, cast(Channel, None))
            if reply is None or isinstance(reply, Command):
                return reply
            held = asyncio.ensure_future(reply)
            await asyncio.sleep(0)
            held.cancel()
            await asyncio.gather(held, return_exceptions=True)
            return None

        return self.run(process())

    # Producers and storage

    def send(self, _: int, message: str) -> None:
        self._sends[message] += 1
        self._under_way += [(message, self._sends[message])] * _ATTEMPTS
        self._answer[message] = "waiting"

    def store(self, at: int, queue: str, message: str) -> None:
        """Store a message.

        Earlier messages in the queue are made durable before, unless they will be lost.
        """
        del queue
        if self._answer[message] == "unsent":
            self.send(at, message)
        under_way = [request for request in self._under_way if request[0] == message]
        if not under_way:
            raise ImpossibleError(f"no attempt of {message} remains")
        if len(self._queue()) <= self._left_next(at):
            self._flush()
        latest = max(under_way)
        self._under_way.remove(latest)
        self._stored[latest] = self._node.running().append(
            Message(TOPIC, b".", {UNIQUE_KEY: message}, queue_id=0)
        )

    def acknowledge(self, _: int, message: str) -> None:
        appended = self._stored.get((message, self._sends[message]))
        if appended is None:
            raise ImpossibleError(f"no attempt of {message} is being answered")
        if self.run(self._settled(appended)) is not PutStatus.PUT_OK:
            raise DeviationError(f"{message} is durable, but was not acknowledged")
        self._answer[message] = "acked"

    def fail(self, _: int, message: str) -> None:
        self._answer[message] = "unknown"

    # The group's offsets

    def noted(self, at: int) -> None:
        """After a change of an offset, write the offsets if the next crash must leave them."""
        after = next((n for n in range(at + 1, len(self._steps)) if self._steps[n].action == "Restart"), None)
        if after is not None and self._states[after]["committed"] == [self._committed()]:
            self._persist()

    def reset(self, at: int, queue: str, offset: int) -> None:
        """Reset the group's offset, as an operator that names the queue and the offset."""
        del queue
        if offset > len(self._queue()):
            raise ImpossibleError("no group is reset beyond the end")
        self.ready(offset)
        header = ResetOffsetRequest(TOPIC, GROUP, timestamp=0, is_force=True, queue_id=0, offset=offset)
        request = new_request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, headers.write(header))
        self._succeeds(request)
        self.noted(at)

    def commit(self, at: int, offset: int) -> None:
        header = UpdateOffsetRequest(GROUP, TOPIC, 0, offset)
        self._succeeds(new_request(RequestCode.UPDATE_CONSUMER_OFFSET, headers.write(header)))
        self.noted(at)

    def _succeeds(self, request: Command) -> None:
        answer = self.request(request)
        if answer is None or answer.code != ResponseCode.SUCCESS:
            raise DeviationError(f"request {request.code} was answered {answer and answer.remark}")

    # Reading

    def ready(self, place: int) -> None:
        """Make the message at this place durable and visible; before that it must not be visible."""
        store = self._node.running()
        store.dispatch()
        if place > self._node.durable():
            if store.max_offset(TOPIC, 0) >= place:
                raise DeviationError(f"the message at {place} was readable before it was durable")
            self._flush()
            store.dispatch()

    def pull(self, offset: int) -> tuple[list[str], PullResponse, int]:
        """Return at most one message from the offset on, the other fields of the answer, and its code."""
        header = PullRequest(GROUP, TOPIC, 0, offset, 1, PULL_HAS_SUBSCRIPTION, 0, 0, 0, "*", "TAG")
        answer = self.request(new_request(RequestCode.PULL_MESSAGE, headers.write(header)))
        assert answer is not None, "the pull must not be held"
        messages = [stored.message_id for stored in read_records(answer.body)]
        return messages, headers.read(PullResponse, answer.fields), answer.code

    # Faults

    def lose(self, at: int, queue: str, length: int) -> None:
        del queue
        if not self.is_up:
            self._left = length
            return
        self._persist()
        self.crash(at)
        self._left = length
        self.restart(at)

    def crash(self, _: int) -> None:
        self._node.end()
        self._stored.clear()

    def roll_back(self, at: int, queue: str, offset: int) -> None:
        """Do nothing: the offsets in the file are found when the broker starts."""

    def withdraw(self, at: int) -> None:
        """Do nothing: messages that are no longer guaranteed may be lost, but need not be."""

    def restart(self, at: int) -> None:
        """Restart with the remaining data.

        Unsynced data may be lost. If no promise holds, the files may be damaged too.
        """
        there = [end for _, end in self._node.records()]
        left, self._left = self._left, None
        if left is None or left >= len(there):
            self._disk.crash_process()
        elif left >= self._node.durable():
            self._disk.crash_os(self._node.image(left))
        elif self._states[at]["promise"]:
            raise ImpossibleError(f"durable messages are not lost: {left} of {len(there)} messages remain")
        else:
            begin = there[left - 1] if left else 0
            self._disk.open(LOG).write(begin, bytes(there[-1] - begin))
            self._disk.crash_process()
        if self._states[at + 1]["committed"] != [self._committed_on_disk]:
            raise ImpossibleError("the remaining offset was never written")
        self._start()

    # Helper methods

    def _start(self) -> None:
        self._node.start()
        runtime = Runtime(ManualClock(), self._disk, SimulatedNetwork(), random.Random(0), inline)
        services = PartialServices(
            BrokerConfig(name=QUEUE.broker_name),
            runtime,
            self._node.store,
            {TOPIC: TopicConfig(TOPIC, read_queue_nums=1, write_queue_nums=1)},
            {GROUP: SubscriptionGroup(group_name=GROUP)},
            self._node.offsets,
        )
        self._handle = handler(
            {code: partial(work, cast(Services, services)) for code, work in _PROCESSORS.items()}
        )

    async def _settled(self, appended: Appended) -> PutStatus:
        """Return the result of a send whose record is flushed now; it must not be answered before."""
        store = self._node.running()
        is_durable = store.log_flushed >= appended.end
        settling = asyncio.ensure_future(store.settle(appended, True))
        await asyncio.sleep(0)
        if settling.done() and not is_durable:
            raise DeviationError("the message was answered before it was durable")
        await store.flush_log()
        return await settling

    def _flush(self) -> None:
        self.run(self._node.running().flush_log())

    def _persist(self) -> None:
        self.run(self._node.offsets.persist())
        self._committed_on_disk = self._committed()

    def _queue(self) -> list[str]:
        return [message for message, _ in self._node.records()]

    def _committed(self) -> int:
        return self._node.offsets.query(GROUP, TOPIC, 0) or 0

    def _left_next(self, at: int) -> int:
        """Return the number of messages that the next loss leaves."""
        losses = (step.parameters[1] for step in self._steps[at + 1 :] if step.action == "Lose")
        return cast(int, next(losses, len(self._config.messages) * self._config.sends_max))


class PartialServices:
    """The part of a broker's services that the processors need."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        store: object,
        topics: Mapping[str, TopicConfig],
        groups: Mapping[str, SubscriptionGroup],
        offsets: object,
    ) -> None:
        self.config, self.runtime, self.store, self.offsets = config, runtime, store, offsets
        self.topics, self.groups = topics, groups
        self.holds, self.clients = PullHolds(), ClientTable()
        self.pull_progress = PullProgress(config.offset_pairs_max)
        self.statistics = Statistics(config.cluster)
        self.events = None


class SteppedDelivery:
    """Drives a broker through a behaviour of Delivery; the group is represented by its requests.

    Names of variables and actions are those of Delivery.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._loop = StepLoop()
        config: Config = bounded("Delivery", script.configuration)
        self._service = Service(config, script.steps, list(script.states()), self._loop)
        self._seen: list[str] = []

    def take(self, at: int) -> None:
        step = self._steps[at]
        _ACTIONS[step.action](self._service if step.action in SERVICE else self, at, *step.parameters)

    def look(self) -> Variables:
        return {**self._service.shown(), "seen": [list(self._seen)]}

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        if tried is None or not self._service.is_up:
            return False
        could: bool = tried(self, *step.parameters)
        return could

    def close(self) -> None:
        self._loop.close()

    def _deliver(self, _: int, queue: str, place: int) -> None:
        del queue
        self._service.ready(place)
        messages, _answer, _code = self._service.pull(place - 1)
        if not messages:
            raise DeviationError(f"there is nothing to read at {place}")
        self._seen[place - 1 : place] = messages

    def _commit_offset(self, at: int, queue: str, offset: int) -> None:
        del queue
        if offset > len(self._seen):
            raise ImpossibleError("a message that was not delivered cannot be finished")
        self._service.commit(at, offset)

    def _reset(self, at: int, queue: str, offset: int) -> None:
        self._service.reset(at, queue, offset)
        del self._seen[offset:]

    def _correct_offset(self, at: int, queue: str, offset: int) -> None:
        """Move a reader to the end of the queue, as the broker's answer says.

        The model allows any offset; the broker only returns the end.
        """
        del queue
        corrected, end = self._corrected(), len(self._service._queue())
        if corrected not in (None, end):
            raise DeviationError(f"a reader was moved to {corrected}, the end is {end}")
        if corrected != offset:
            raise ImpossibleError(f"a reader after {len(self._seen)} messages was not moved to {offset}")
        del self._seen[offset:]
        self._service.commit(at, offset)

    def _corrected(self) -> int | None:
        """Return the offset to which the broker moves a reader after its last message; None if it stays."""
        self._service.ready(len(self._service._queue()))
        _, response, code = self._service.pull(len(self._seen))
        return response.next_begin_offset if code == ResponseCode.PULL_OFFSET_MOVED else None

    # Disabled actions

    def _refuses_delivery(self, queue: str, place: int) -> bool:
        """Pull beyond the end. Before the end, delivery is possible in any order."""
        del queue
        if place <= len(self._service._queue()):
            return False
        if self._service.pull(place - 1)[0]:
            raise DeviationError("Deliver is disabled, but was executed")
        return True

    def _refuses_commit(self, queue: str, offset: int) -> bool:
        """Commit the same offset again.

        A broker also accepts lower offsets, and offsets of undelivered messages.
        """
        del queue
        if offset != self._service._committed():
            return False
        self._service.commit(len(self._steps), offset)
        return True

    def _refuses_reset(self, queue: str, offset: int) -> bool:
        """Reset the group to its current offset."""
        if offset != self._service._committed() or offset > len(self._service._queue()):
            return False
        self._service.reset(len(self._steps), queue, offset)
        return True

    def _refuses_correction(self, queue: str, offset: int) -> bool:
        """Check that a reader that is not beyond the end is not moved."""
        del queue, offset
        if len(self._seen) > len(self._service._queue()):
            return False
        if self._corrected() is not None:
            raise DeviationError("CorrectOffset is disabled, but was executed")
        return True


SERVICE: Final[Mapping[str, Any]] = {
    "Send": Service.send,
    "Retry": Service.send,
    "Store": Service.store,
    "Acknowledge": Service.acknowledge,
    "Fail": Service.fail,
    "Lose": Service.lose,
    "Crash": Service.crash,
    "RollBack": Service.roll_back,
    "Withdraw": Service.withdraw,
    "Restart": Service.restart,
}
"""The actions of the broker and its producers."""
_ACTIONS: Final[Mapping[str, Any]] = {
    **SERVICE,
    "Deliver": SteppedDelivery._deliver,
    "CommitOffset": SteppedDelivery._commit_offset,
    "Reset": SteppedDelivery._reset,
    "CorrectOffset": SteppedDelivery._correct_offset,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "Deliver": SteppedDelivery._refuses_delivery,
    "CommitOffset": SteppedDelivery._refuses_commit,
    "Reset": SteppedDelivery._refuses_reset,
    "CorrectOffset": SteppedDelivery._refuses_correction,
}
"""Functions that try a disabled action; they return False if it could not be tried."""
