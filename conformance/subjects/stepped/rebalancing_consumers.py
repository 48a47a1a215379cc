"""A broker's table of members and the consumers of a group as a target for behaviours of Rebalance.

The consumers are complete, except for their timers: they send heartbeats, request the route and rebalance
when the script says so. The table of the broker is in memory only. Its answers come from its processor.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects.stepped.delayed_requests import at_rest
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.conformance.subjects.stepped.untimed_consumer import (
    GROUP,
    QUEUE,
    SteppedMember,
    killed,
    offset_answer,
)
from mqproof.impl.broker.processors import groups
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.clients import ClientTable
from mqproof.impl.broker.state.clients import Member as Registered
from mqproof.impl.client.connection.routes import subscribe_queues
from mqproof.impl.client.consuming import allocation
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import PERM_READ_WRITE, BrokerData, Heartbeat, QueueData, TopicRoute
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.runtime.runtime import Runtime
from mqproof.reference.rebalance import Config

T = TypeVar("T")


class _Connection:
    """The connection of one process of a member to the broker."""

    remote = ("127.0.0.1", 1)
    takes = True
    is_open = True


class _Broker:
    """A broker of the topic: the number of its queues, and its table of members."""

    def __init__(self, queues: int) -> None:
        self.queues = queues
        self.clients = ClientTable()
        self._handle = handler(
            {
                RequestCode.GET_CONSUMER_LIST_BY_GROUP: lambda *call: groups.consumer_ids(
                    cast(Services, self), *call
                )
            }
        )

    def route(self) -> bytes:
        broker = BrokerData({0: "127.0.0.1:10911"}, QUEUE.broker_name, "cluster")
        queues = QueueData(QUEUE.broker_name, PERM_READ_WRITE, self.queues, write_queue_nums=self.queues)
        return java_json.write(TopicRoute([broker], [queues]))

    def members(self, request: Command) -> Command:
        answer = self._handle(request, cast(Channel, None))
        assert isinstance(answer, Command), "the list is known at once"
        return answer

    def register(self, connection: _Connection, heartbeat: Heartbeat) -> None:
        member = Registered(heartbeat.client_id, "PYTHON", 1, 0)
        self.clients.heartbeat(cast(Channel, connection), heartbeat, member)


class _Member(SteppedMember):
    """A member that computes its share itself, and the last heartbeat that it sent."""

    def __init__(self, name: str, config: Config, broker: _Broker, runtime: Runtime) -> None:
        self._strategy = allocation.averagely if config.strategy == "average" else allocation.by_circle
        self._broker = broker
        self.connection = _Connection()
        self.heartbeat: Heartbeat | None = None
        self.is_refused = False
        """Whether the broker refused the last request for the members."""
        super().__init__(name, [], runtime, _listen, PushConsumerConfig())

    def share(self, queues: Sequence[MessageQueue], ids: Sequence[str], own: str) -> list[MessageQueue]:
        return self._strategy(queues, ids, own)

    @property
    def owned(self) -> list[int]:
        """The queues that it reads, from 1."""
        return sorted(queue.queue_id + 1 for queue in self.consumer.owned())

    def route(self) -> int:
        """Return the number of queues in its route."""
        known = self.consumer._session.routes.known(QUEUE.topic)
        return len(subscribe_queues(QUEUE.topic, known)) if known else 0

    async def poll(self) -> None:
        await self.consumer._session.routes.refresh(QUEUE.topic)

    async def send_heartbeat(self) -> Heartbeat:
        await self.consumer._session.heartbeat()
        await at_rest()
        assert self.heartbeat is not None
        return self.heartbeat

    def at_once(self, request: Command) -> Command | None:
        """Answer with the broker's tables. A heartbeat arrives when the script says so."""
        match request.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC if request.fields["topic"] == QUEUE.topic:
                return request.answer(ResponseCode.SUCCESS, body=self._broker.route())
            case RequestCode.GET_CONSUMER_LIST_BY_GROUP:
                answer = self._broker.members(request)
                self.is_refused = answer.code != ResponseCode.SUCCESS
                return answer
            case RequestCode.HEART_BEAT:
                self.heartbeat = java_json.read(Heartbeat, request.body)
                return request.answer(ResponseCode.SUCCESS)
            case _:
                return offset_answer(request) or super().at_once(request)


class SteppedRebalance:
    """Drives a broker and consumers through a behaviour of Rebalance.

    Names of variables and actions are those of Rebalance.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._config: Config = bounded("Rebalance", script.configuration)
        self._loop = StepLoop("mqproof.impl.client")
        self._run = self._loop.run
        self._broker = _Broker(script.initial["queues"])
        self._members: dict[int, _Member] = {}
        self._connections: dict[int, list[_Connection]] = {member: [] for member in self._config.members}
        """All connections of a member's processes that the broker has not noticed to be closed."""
        self._routes = dict.fromkeys(self._config.members, self._broker.queues)

    def take(self, at: int) -> None:
        step = self._steps[at]
        self._run(_ACTIONS[step.action](self, *step.parameters))

    def look(self) -> Variables:
        for number, member in self._members.items():
            self._routes[number] = member.route()
        known = [int(name.removeprefix("m")) for name in self._broker.clients.consumer_ids(GROUP)]
        owned = [self._members[each].owned if each in self._members else [] for each in self._config.members]
        shown = {"queues": self._broker.queues, "alive": sorted(self._members), "share": owned}
        shown["route"] = list(self._routes.values())
        return {**shown, "known": [known]} if len(self._config.brokers) == 1 else shown

    def refuses(self, step: Stimulus) -> bool:
        tried = _REFUSALS.get(step.action)
        return tried is not None and bool(self._run(tried(self, *step.parameters)))

    def close(self) -> None:
        self._loop.close()

    # Members

    async def _start(self, number: int) -> None:
        member = self._members[number] = _Member(f"m{number}", self._config, self._broker, self._loop.runtime)
        await member.start()
        await member.poll()

    async def _die(self, number: int) -> None:
        member = self._members.pop(number)
        self._routes[number] = member.route()
        await killed(member.consumer)

    async def _heartbeat(self, number: int, broker: str) -> None:
        self._require_one(broker)
        member = self._members[number]
        self._broker.register(member.connection, await member.send_heartbeat())
        self._connections[number].append(member.connection)

    async def _poll(self, number: int) -> None:
        await self._members[number].poll()

    async def _rebalance(self, number: int, broker: str) -> None:
        """Rebalance. A broker without members of the group refuses to list them, and the share stays."""
        self._require_one(broker)
        member = self._members[number]
        await member.rebalance()
        if member.is_rebalancing:
            raise DeviationError(f"the rebalance of {number} does not end")
        if member.is_refused and member.owned:
            raise ImpossibleError("the broker knows no member of the group")

    # Brokers and operators

    async def _forget(self, broker: str, number: int) -> None:
        self._require_one(broker)
        for connection in self._connections[number]:
            self._broker.clients.channel_closed(cast(Channel, connection))
        self._connections[number].clear()

    async def _restart(self, broker: str) -> None:
        self._require_one(broker)
        self._broker.clients = ClientTable()
        for connections in self._connections.values():
            connections.clear()

    async def _resize(self, count: int) -> None:
        self._broker.queues = count

    # Disabled actions

    async def _refuses_heartbeat(self, number: int, broker: str) -> bool:
        """Send one more heartbeat from a member that the broker knows."""
        if number not in self._members or len(self._config.brokers) > 1:
            return False
        await self._heartbeat(number, broker)
        return True

    async def _refuses_poll(self, number: int) -> bool:
        """Request a route that has not changed."""
        if number not in self._members:
            return False
        await self._poll(number)
        return True

    async def _refuses_rebalance(self, number: int, broker: str) -> bool:
        """Rebalance with the members and queues of the last time."""
        if number not in self._members or len(self._config.brokers) > 1:
            return False
        await self._rebalance(number, broker)
        return True

    # Helper methods

    def _require_one(self, broker: str) -> None:
        if len(self._config.brokers) > 1:
            raise ImpossibleError(f"the consumer chooses the broker, and not always {broker}")


async def _listen(_: object) -> None:
    """Consume: the topic has no messages."""


_ACTIONS: Final[Mapping[str, Any]] = {
    "Start": SteppedRebalance._start,
    "Die": SteppedRebalance._die,
    "Heartbeat": SteppedRebalance._heartbeat,
    "Poll": SteppedRebalance._poll,
    "Rebalance": SteppedRebalance._rebalance,
    "Forget": SteppedRebalance._forget,
    "Restart": SteppedRebalance._restart,
    "Resize": SteppedRebalance._resize,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "Heartbeat": SteppedRebalance._refuses_heartbeat,
    "Poll": SteppedRebalance._refuses_poll,
    "Rebalance": SteppedRebalance._refuses_rebalance,
}
"""Functions that try a disabled action; they return False if it could not be tried."""
