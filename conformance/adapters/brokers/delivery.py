"""A broker as a target of the delivery suite, and the reference as one."""

import asyncio
import random
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.adapters.brokers.drawn_commits import DrawnCommits
from mqproof.conformance.adapters.brokers.environments import Environment, OnEnvironment
from mqproof.conformance.adapters.caller import TIMEOUT_S
from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.conformance.engine.targets import REFERENCE, TargetError
from mqproof.conformance.suites.delivery.target import MEMBERS, QUEUES, Capability, Message
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ConsumerData, ConsumerIds, Heartbeat, Subscription, SubscriptionGroup
from mqproof.impl.remoting.channel import Channel, RemotingError, Reply
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    PULL_HAS_SUBSCRIPTION,
    ConsumerGroupRequest,
    PullRequest,
    UnregisterClientRequest,
    UpdateOffsetRequest,
)

_NOTICED_S: Final = 30.0
"""The maximum time until a broker notices a closed connection, and until members are notified of a change."""
_LOOK_S: Final = 0.05
_SILENT_S: Final = 140.0
"""The time without heartbeats: longer than the two minutes and the scan that a broker allows."""
_BEAT_S: Final = 30.0
_PULLED: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


@dataclass(slots=True)
class _Line:
    """The connection of a member."""

    remoting: RemotingClient
    notified: bool = False


class BrokerDelivery(OnEnvironment):
    """The target of the delivery suite that drives a broker in an environment."""

    draws_stores = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        able = frozenset(Capability) if environment.is_simulated else frozenset[Capability]()
        self.capabilities: frozenset[Capability | BrokerFault] = able | environment.faults

    def open(self) -> None:
        self._arrive()

    def send(self, queue_id: int, msg_id: str) -> int:
        return self._environment.run(self._caller.send(self._topic, queue_id, msg_id)).queue_offset

    def join(self, member: str) -> None:
        self._environment.run(self._join(member))

    def leave(self, member: str) -> None:
        self._environment.run(self._quit(member))

    def die(self, member: str) -> None:
        self._environment.run(self._die(member))

    def fall_silent(self, member: str) -> None:
        self._environment.run(self._fall_silent(member))

    def members(self, asker: str) -> frozenset[str]:
        return self._environment.run(self._members(asker))

    def notified(self, expected: Set[str]) -> frozenset[str]:
        return self._environment.run(self._notified(expected))

    def pull(self, member: str, queue_id: int, offset: int, count: int) -> tuple[Message, ...]:
        return self._environment.run(self._pull(member, queue_id, offset, count))

    def commit(self, member: str, queue_id: int, offset: int) -> None:
        header = UpdateOffsetRequest(self._group, self._topic, queue_id, offset)
        request = new_request(RequestCode.UPDATE_CONSUMER_OFFSET, headers.write(header))
        self._environment.run(self._request(member, request))

    def commit_oneway(self, member: str, queue_id: int, offset: int) -> None:
        header = UpdateOffsetRequest(self._group, self._topic, queue_id, offset)
        request = new_request(RequestCode.UPDATE_CONSUMER_OFFSET, headers.write(header), oneway=True)
        self._environment.run(self._lines[member].remoting.send_oneway(self._caller.broker, request))

    def inject(self, fault: BrokerFault) -> None:
        super().inject(fault)
        if fault is not BrokerFault.FREEZE:
            self._environment.run(self._hang_up())

    def query(self, queue_id: int) -> int | None:
        return self._environment.run(self._caller.committed(self._group, self._topic, queue_id))

    async def _open(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._silent: list[_Line] = []
        self._topic, self._group = f"{self._caller.prefix}_topic", f"{self._caller.prefix}_group"
        await self._caller.make_topic(self._topic, QUEUES)
        await self._caller.make_group(SubscriptionGroup(group_name=self._group))

    async def _hang_up(self) -> None:
        """Close all remaining connections of members."""
        for line in (*self._lines.values(), *self._silent):
            await line.remoting.close()
        self._lines.clear()
        self._silent.clear()

    async def _leave(self) -> None:
        await self._hang_up()
        await self._caller.forget([self._topic, f"%RETRY%{self._group}"], [self._group])
        await self._caller.stop()

    # Members

    async def _join(self, member: str) -> None:
        def on_notification(request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a handler's signature
            line.notified |= request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
            return request.answer(ResponseCode.SUCCESS)

        line = self._lines[member] = _Line(
            RemotingClient(self._environment.runtime.remoting, on_notification)
        )
        await self._beat(member)

    async def _beat(self, member: str) -> None:
        data = ConsumerData(self._group, subscription_data_set=[Subscription(self._topic, sub_version=1)])
        body = java_json.write(Heartbeat(self._client(member), [data]), standard=True)
        await self._request(member, new_request(RequestCode.HEART_BEAT, body=body))

    async def _quit(self, member: str) -> None:
        header = UnregisterClientRequest(self._client(member), consumer_group=self._group)
        await self._request(member, new_request(RequestCode.UNREGISTER_CLIENT, headers.write(header)))
        await self._lines.pop(member).remoting.close()

    async def _die(self, member: str) -> None:
        await self._lines.pop(member).remoting.close()
        await self._noticed(member)

    async def _fall_silent(self, member: str) -> None:
        """Keep sending requests without heartbeats: the broker checks only heartbeats."""
        line = self._lines.pop(member)
        self._silent.append(line)
        for _ in range(round(_SILENT_S / _BEAT_S) + 1):
            await asyncio.sleep(_BEAT_S)
            with suppress(RemotingError):
                request = new_request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, self._group_header())
                await line.remoting.invoke(self._caller.broker, request, TIMEOUT_S)
            for each in self._lines:
                await self._beat(each)

    async def _noticed(self, member: str) -> None:
        """Return when the broker has noticed that the member is gone, or should have."""
        for _ in range(round(_NOTICED_S / _LOOK_S)):
            header = ConsumerGroupRequest(self._group)
            answer = await self._caller.request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header, accepts=())
            if member not in self._known(answer):
                return
            await asyncio.sleep(_LOOK_S)

    async def _members(self, asker: str) -> frozenset[str]:
        request = new_request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, self._group_header())
        answer = await self._request(asker, request, ())
        return self._known(answer)

    def _group_header(self) -> dict[str, str]:
        return headers.write(ConsumerGroupRequest(self._group))

    def _known(self, answer: Command) -> frozenset[str]:
        if answer.code != ResponseCode.SUCCESS:
            return frozenset()  # the group has no members
        ids = java_json.read(ConsumerIds, answer.body).consumer_id_list
        names = {self._client(member): member for member in MEMBERS}
        return frozenset(names.get(each, each) for each in ids)

    async def _notified(self, expected: Set[str]) -> frozenset[str]:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _NOTICED_S
        while loop.time() < end_s:
            if all(self._lines[member].notified for member in expected):
                break
            await asyncio.sleep(_LOOK_S)
        notified = frozenset(member for member, line in self._lines.items() if line.notified)
        for line in self._lines.values():
            line.notified = False
        return notified

    def _client(self, member: str) -> str:
        return f"127.0.0.1@{self._caller.prefix}_{member}"

    # Requests of members

    async def _pull(self, member: str, queue_id: int, offset: int, count: int) -> tuple[Message, ...]:
        header = PullRequest(
            consumer_group=self._group, topic=self._topic, queue_id=queue_id, queue_offset=offset,
            max_msg_nums=count, sys_flag=PULL_HAS_SUBSCRIPTION, commit_offset=0, suspend_timeout_millis=0,
            sub_version=1, subscription="*", expression_type="TAG",
        )  # fmt: skip
        request = new_request(RequestCode.PULL_MESSAGE, headers.write(header))
        answer = await self._request(member, request, _PULLED)
        return tuple(
            Message(stored.message.body.decode(), stored.queue_offset) for stored in read_records(answer.body)
        )

    async def _request(
        self, member: str, request: Command, accepts: tuple[int, ...] = (ResponseCode.SUCCESS,)
    ) -> Command:
        try:
            answer = await self._lines[member].remoting.invoke(self._caller.broker, request, TIMEOUT_S)
        except RemotingError as error:
            raise TargetError(f"{self._caller.broker}: {error}") from None
        if accepts and answer.code not in accepts:
            refusal = f"code {answer.code}, {answer.remark}"
            raise TargetError(f"{self._caller.broker}: request {request.code} is refused: {refusal}")
        return answer


class ReferenceDelivery:
    """The reference itself, with random choices.

    If the suite does not explain its answers, the suite has a defect.
    """

    name = REFERENCE
    capabilities = frozenset[Capability | BrokerFault]({*Capability, *BrokerFault})

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)

    def open(self) -> None:
        self._queues: list[list[str]] = [[] for _ in range(QUEUES)]
        self._commits = DrawnCommits(self._chance, QUEUES)
        self._live: set[str] = set()

    def send(self, queue_id: int, msg_id: str) -> int:
        self._queues[queue_id].append(msg_id)
        return len(self._queues[queue_id]) - 1

    def join(self, member: str) -> None:
        self._live.add(member)

    def leave(self, member: str) -> None:
        self._live.discard(member)

    die = leave
    fall_silent = leave

    def inject(self, fault: BrokerFault) -> None:
        if fault is not BrokerFault.FREEZE:
            self._live.clear()
        self._commits.inject(fault)

    def members(self, asker: str) -> frozenset[str]:  # noqa: ARG002
        return frozenset(self._live)

    def notified(self, expected: Set[str]) -> frozenset[str]:  # noqa: ARG002
        return frozenset(self._live)

    def pull(self, member: str, queue_id: int, offset: int, count: int) -> tuple[Message, ...]:  # noqa: ARG002
        found = self._queues[queue_id][offset : offset + self._chance.randint(1, count)]
        return tuple(Message(msg_id, at) for at, msg_id in enumerate(found, start=offset))

    def commit(self, member: str, queue_id: int, offset: int) -> None:  # noqa: ARG002
        self._commits.commit(queue_id, offset)

    def commit_oneway(self, member: str, queue_id: int, offset: int) -> None:  # noqa: ARG002
        self._commits.commit_oneway(queue_id, offset)

    def query(self, queue_id: int) -> int | None:
        self._commits.arrive()
        committed = self._commits[queue_id]
        return 0 if committed is None and self._queues[queue_id] else committed

    def close(self) -> None:
        pass
