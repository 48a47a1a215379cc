"""Our push consumers as the members of a group, on a broker in simulated time.

Their requests and the answers are checked against the same model as those of the members that the delivery
suite simulates. A member reads a queue from the answer to its offset query until a rebalance takes the queue
away. Some members leave, the process of some dies or pauses, and the machine of some fails silently.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from mqproof.conformance.adapters import own_checks
from mqproof.conformance.adapters.brokers.client_tour import Tour
from mqproof.conformance.adapters.brokers.environments import SimulatedEnvironment
from mqproof.conformance.adapters.brokers.member_tables import SettledGroup, wrong_tables
from mqproof.conformance.adapters.caller import Caller
from mqproof.conformance.adapters.final_look import FinalLook
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import Finding, with_wrong_answers
from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.engine.value_pairs import Row, row_of
from mqproof.conformance.suites.consumers import dimensions
from mqproof.conformance.suites.consumers.dimensions import DIMENSIONS, PAUSED, SENDS, SIZES
from mqproof.conformance.suites.consumers.target import CHANGES, ROWS, Group
from mqproof.conformance.suites.delivery.checkers import CHECKERS
from mqproof.conformance.suites.delivery.oracle import EXPLANATION, assigned_queues
from mqproof.conformance.suites.delivery.steps import (
    Change,
    Commit,
    Deliver,
    Membership,
    Operation,
    Rebalance,
    Reset,
    Send,
    Settled,
    faults_of_members,
)
from mqproof.conformance.suites.delivery.target import MEMBERS, QUEUES, Message
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ConsumerIds, SubscriptionGroup
from mqproof.impl.remoting.channel import ConnectError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import PULL_COMMITS_OFFSET, OffsetResponse, ResetOffsetRequest
from mqproof.impl.runtime.runtime import Runtime
from mqproof.report.model import Witness

_FORGOTTEN_S: Final = 150.0
"""The wait until all know that a member is silent: two minutes, a scan of the broker, and a rebalance."""
_SETTLES_S: Final = 30.0
"""The wait after a change: longer than a rebalance, an offset commit interval and a wait for messages."""
_COMMITTED_S: Final = 12.0
"""The wait until a member has read, and has committed what it read: two commit intervals."""
_LOOK_S: Final = 0.25
_LOOKS: Final = 24
"""How often the committed offsets are queried: for longer than a commit interval."""
_RESET_CHANCE: Final = 0.1
_PAUSED_CHANCE: Final = 0.5
_CONFIG: Final = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)


@dataclass(slots=True)
class _Member:
    session: Session
    consumer: "_NotifiedConsumer"
    machine: str
    """A machine that has failed is not used again."""
    gone: bool = False
    """True if no peer receives the member's requests any more."""
    owned: set[int] = field(default_factory=set)
    assigned_queues: frozenset[int] = frozenset()
    ids: frozenset[str] = frozenset()
    started: dict[int, int | None] = field(default_factory=dict)
    """During a rebalance: the new queues with the offsets that the broker returned for them."""


class _NotifiedConsumer(PushConsumer):
    """A push consumer that records notifications of membership changes."""

    notified = False

    def members_changed(self) -> None:
        self.notified = True
        super().members_changed()


class PushMembers(Group):
    """One group in one environment, which is opened.

    Methods are steps; each returns when the group has settled.
    """

    def __init__(self, environment: SimulatedEnvironment) -> None:
        super().__init__(
            f"a broker with a new topic of {QUEUES} queues and a new group", EXPLANATION, CHECKERS
        )
        self._environment = environment
        self.different: tuple[Witness, ...] = ()
        """What differs in the calls of our client's interface."""
        self._members: dict[str, _Member] = {}
        self._leaving: dict[str, _Member] = {}
        self._live: set[str] = set()
        """The members as the broker knows them."""
        self._silent = ""
        """The member that failed silently and has not been removed yet."""
        self._machines = 0
        self._sent = 0
        self._stored = ""
        """The offset message id of the last message."""
        self.scenarios = []
        self._now: list[Operation] = []
        environment.open()
        environment.run(self._open())

    def send(self, queue_id: int) -> None:
        self._send(queue_id)
        self._flush()

    def join(self, member: str) -> None:
        self._start(member)
        self._settle(member, Change.JOINS)

    def join_while_one_is_paused(self, member: str, slow: str) -> None:
        """Let a member join while the process of another one is paused.

        The new member takes over queues, reads and commits. When the slow member continues, it commits its
        own offsets of these queues before it discovers that it has lost them.
        """
        machine = self._members[slow].machine
        self._environment.pause(machine)
        self._start(member)
        for queue_id in range(QUEUES):
            self._send(queue_id)
        self._environment.run(asyncio.sleep(_COMMITTED_S))
        self._environment.go_on(machine)
        for _ in range(_LOOKS):
            self._environment.run(asyncio.sleep(_LOOK_S))
            for queue_id in range(QUEUES):
                offset = self._environment.run(self._caller.committed(self._group, self._topic, queue_id))
                self._now.append(Query(queue_id, offset))
        self._settle(member, Change.JOINS)

    def leave(self, member: str) -> None:
        left = self._leaving[member] = self._members.pop(member)
        self._environment.run(left.consumer.stop())
        self._environment.run(left.session.stop())
        self._settle(member, Change.LEAVES)

    def die(self, member: str) -> None:
        """End the member's process, which closes its connections."""
        gone = self._members.pop(member)
        gone.gone = True
        gone.session.remoting.abort()
        self._live.discard(member)
        self._now.append(Membership(member, Change.DIES, frozenset()))
        self._settle(member, Change.DIES)

    def fall_silent(self, member: str) -> None:
        """Remove the member's machine without notifying any peer."""
        gone = self._members.pop(member)
        gone.gone = True
        self._environment.lose_machine(gone.machine)
        self._silent = member
        self._environment.run(asyncio.sleep(_FORGOTTEN_S))
        self._forgotten(frozenset())
        self._settle(member, Change.SILENT)

    def reset(self) -> None:
        """Reset the group's offsets to the beginnings of the queues, as an administrator."""
        header = ResetOffsetRequest(self._topic, self._group, timestamp=0, is_force=True)
        self._now.append(Reset(tuple((queue_id, 0) for queue_id in range(QUEUES))))
        self._environment.run(self._caller.request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header))
        self._environment.run(asyncio.sleep(_SETTLES_S))
        self._flush()

    def meet(self, row: Row, chance: random.Random) -> None:
        """Bring the group to the size of the row, and meet its other values."""
        size, change = SIZES[row[dimensions.SIZE]], row[dimensions.CHANGE]
        for member in MEMBERS:
            if len(self._members) < size and member not in self._members:
                self.join(member)
        while len(self._members) > size:
            self.leave(max(self._members))
        begin = len(self.script())
        facts = [f"{len(self._members)} members"]
        for queue_id in SENDS[row[dimensions.MESSAGES]]:
            self.send(queue_id)
        if row[dimensions.RESET] == "before the change":
            self.reset()
        present = sorted(self._members)
        if change in (Change.JOINS, PAUSED):
            member = next(each for each in MEMBERS if each not in present)
            if change == PAUSED:
                facts.append("one is paused")
                self.join_while_one_is_paused(member, chance.choice(present))
            else:
                self.join(member)
        else:
            ways = {Change.LEAVES: self.leave, Change.DIES: self.die, Change.SILENT: self.fall_silent}
            ways[Change(change)](chance.choice(present))
        if row[dimensions.RESET] == "after the change":
            self.reset()
        self.scenarios.append([*facts, *self.script()[begin:]])

    def settled(self) -> None:
        """Wait until all messages should have arrived, and record that the group has settled."""
        self._environment.run(asyncio.sleep(_SETTLES_S))
        self._flush()
        offsets = {}
        for queue_id in range(QUEUES):
            offset = self._environment.run(self._caller.committed(self._group, self._topic, queue_id))
            self.observe(Query(queue_id, offset))
            offsets[queue_id] = offset or 0
        self.observe(Settled())
        self._environment.run(self._compare_tables(offsets))
        self._environment.run(Tour(self._environment, self._caller).run())
        self._environment.run(FinalLook(self._caller, self._environment.watch).look())

    async def _compare_tables(self, offsets: dict[int, int]) -> None:
        """Compare what administrators see of the group with its members."""
        owned = {self._client(name): frozenset(member.owned) for name, member in self._members.items()}
        group = SettledGroup(self._group, self._topic, owned, offsets, self._stored)
        wrong = [each async for each in wrong_tables(self._caller, group)]
        self._environment.watch.found("the tables about the group", wrong)

    def findings(self) -> dict[str, Finding]:
        wrong = (*self._environment.watch.wrong, *self.different)
        return with_wrong_answers(super().findings(), wrong)

    def faults_in(self, operation: Operation) -> tuple[FaultKind, ...]:
        return faults_of_members(operation)

    def close(self) -> None:
        for member in self._members.values():
            self._environment.run(member.consumer.stop())
            self._environment.run(member.session.stop())
        self._environment.run(self._caller.stop())
        self._environment.close()

    async def _open(self) -> None:
        self._caller = Caller(self._environment.name_server, self._environment.runtime)
        self._topic, self._group = f"{self._caller.prefix}_topic", f"{self._caller.prefix}_group"
        await self._caller.start()
        await self._caller.make_topic(self._topic, QUEUES)
        await self._caller.make_group(SubscriptionGroup(group_name=self._group))

    def _start(self, name: str) -> None:
        self._machines += 1
        machine = f"machine-{self._machines}"
        runtime = self._environment.machine(machine)
        self._environment.run_on(machine, self._join(name, machine, runtime))

    async def _join(self, name: str, machine: str, runtime: Runtime) -> None:
        session = Session([self._environment.name_server], runtime, self._client(name))
        invoke = session.remoting.invoke

        async def watched(address: Any, request: Command, timeout_s: float) -> Command:
            if member.gone:
                raise ConnectError(f"{name} has failed")
            self._before_request(name, request)
            answer = await invoke(address, request, timeout_s)
            self._after_answer(name, request, answer)
            return answer

        session.remoting.invoke = watched  # type: ignore[method-assign]
        await session.start()
        consumer = _NotifiedConsumer(session, self._group, _consumed, _CONFIG)
        member = self._members[name] = _Member(session, consumer, machine)
        await consumer.subscribe(self._topic)
        await consumer.start()

    def _settle(self, member: str, change: Change) -> None:
        """Wait until the others are notified and all members have rebalanced."""
        self._environment.run(asyncio.sleep(_SETTLES_S))
        others = {name: each for name, each in self._members.items() if name != member}
        notified = frozenset(name for name, each in others.items() if each.consumer.notified)
        for each in self._members.values():
            each.consumer.notified = False
        # The member joins or leaves when its first or last request is answered.
        mine = [n for n, step in enumerate(self._now) if step == Membership(member, change, frozenset())]
        for n in mine:
            self._now[n] = Membership(member, change, notified)
        self._flush()

    def _flush(self) -> None:
        for operation in self._now:
            self.observe(operation)
        self._now.clear()

    def _send(self, queue_id: int) -> None:
        self._sent += 1
        msg_id = f"m{self._sent}"
        sent = self._environment.run(self._caller.send(self._topic, queue_id, msg_id))
        self._stored = sent.msg_id
        # A waiting consumer may receive the message before its producer receives the answer.
        self._now.insert(0, Send(queue_id, Message(msg_id, sent.queue_offset)))

    # Requests of members, and the answers

    def _before_request(self, name: str, request: Command) -> None:
        """Record the effects of a request that do not depend on its answer."""
        fields = request.fields
        commits = request.code == RequestCode.PULL_MESSAGE and int(fields["sysFlag"]) & PULL_COMMITS_OFFSET
        if commits and fields["topic"] == self._topic:
            self._now.append(Commit(name, int(fields["queueId"]), int(fields["commitOffset"]), oneway=False))

    def _after_answer(self, name: str, request: Command, answer: Command) -> None:
        fields = request.fields
        if request.code == RequestCode.HEART_BEAT:
            came = Membership(name, Change.JOINS, frozenset())
            if name not in self._live and self._group.encode() in request.body:
                self._live.add(name)
                self._now.append(came)
        elif request.code == RequestCode.UNREGISTER_CLIENT and fields.get("consumerGroup") == self._group:
            self._live.discard(name)
            self._now.append(Membership(name, Change.LEAVES, frozenset()))
        elif request.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            self._looked(name, java_json.read(ConsumerIds, answer.body).consumer_id_list)
        elif fields.get("topic") == self._topic:
            self._of_queue(name, RequestCode(request.code), fields, answer)

    def _looked(self, name: str, ids: list[str]) -> None:
        member = self._members[name]
        names = {self._client(each): each for each in MEMBERS}
        member.ids = frozenset(names.get(each, each) for each in ids)
        self._forgotten(member.ids)
        member.assigned_queues, member.started = assigned_queues(member.ids, name), {}
        self._shared(name, member)

    def _forgotten(self, ids: frozenset[str]) -> None:
        """Record that the silent member was removed, if it is not among these ids."""
        if self._silent and self._silent not in ids:
            self._live.discard(self._silent)
            self._now.append(Membership(self._silent, Change.SILENT, frozenset()))
            self._silent = ""

    def _shared(self, name: str, member: _Member) -> None:
        """Record the rebalance, once the member has the start offsets of all its new queues."""
        if (
            member.assigned_queues - member.owned == member.started.keys()
            and member.assigned_queues != member.owned
        ):
            member.owned = set(member.assigned_queues)
            started = tuple(sorted(member.started.items()))
            self._now.append(Rebalance(name, member.ids, member.assigned_queues, started))

    def _of_queue(self, name: str, code: RequestCode, fields: dict[str, str], answer: Command) -> None:
        member = self._members.get(name) or self._leaving[name]
        queue_id = int(fields.get("queueId", -1))
        if code == RequestCode.QUERY_CONSUMER_OFFSET:
            found = answer.code == ResponseCode.SUCCESS
            offset = headers.read(OffsetResponse, answer.fields).offset if found else None
            if queue_id in member.assigned_queues - member.owned:
                member.started[queue_id] = offset
                self._shared(name, member)
            else:
                self._now.append(Query(queue_id, offset))
        elif code == RequestCode.UPDATE_CONSUMER_OFFSET:
            only_forward = fields.get("onlyForward") == "true"
            offset = int(fields["commitOffset"])
            self._now.append(Commit(name, queue_id, offset, oneway=False, only_forward=only_forward))
        elif code == RequestCode.PULL_MESSAGE and answer.body and self._reads(member, queue_id):
            read = read_records(answer.body)
            messages = tuple(Message(each.message.body.decode(), each.queue_offset) for each in read)
            delivery = Deliver(name, queue_id, int(fields["queueOffset"]), messages)
            self._now.insert(self._place_of(delivery, member), delivery)

    def _place_of(self, delivery: Deliver, member: _Member) -> int:
        """Return the index of a delivery among the new steps.

        A member that has computed its queues drops the lost ones a moment later. A message that it receives
        in between counts as delivered before the rebalance.
        """
        end = len(self._now)
        if delivery.queue_id in member.owned:
            return end
        steps = range(end - 1, -1, -1)
        mine = (
            at
            for at in steps
            if isinstance(step := self._now[at], Rebalance) and step.member == delivery.member
        )
        return next(mine, end)

    def _reads(self, member: _Member, queue_id: int) -> bool:
        """Return whether the member still reads the queue; otherwise the messages are not delivered."""
        mine = (queue.queue_id for queue in member.consumer.owned() if queue.topic == self._topic)
        return queue_id in member.owned or queue_id in mine

    def _client(self, member: str) -> str:
        return f"127.0.0.1@{self._caller.prefix}_{member}"


async def _consumed(_messages: Any) -> None:
    pass


def live(seed: int, environment: Callable[[], SimulatedEnvironment] = SimulatedEnvironment) -> PushMembers:
    """Run a group whose members join and leave while messages arrive, until it settles; return it.

    The seed determines all choices. At times the offsets of the group are reset. The group then meets ROWS
    rows of the dimensions.
    """
    chance = random.Random(seed)
    group = PushMembers(environment())
    group.different = own_checks.different_calls(seed)
    try:
        there: set[str] = set()
        for _ in range(CHANGES):
            for _ in range(chance.randrange(4)):
                group.send(chance.randrange(QUEUES))
            if there and chance.random() < _RESET_CHANCE:
                group.reset()
            member = chance.choice(MEMBERS)
            if member not in there:
                if there and chance.random() < _PAUSED_CHANCE:
                    group.join_while_one_is_paused(member, chance.choice(sorted(there)))
                else:
                    group.join(member)
                there.add(member)
            elif len(there) > 1:
                chance.choice((group.leave, group.die, group.fall_silent))(member)
                there.discard(member)
        for number in range(ROWS):
            group.meet(row_of(DIMENSIONS, ROWS * seed + number), chance)
        group.settled()
    finally:
        group.close()
    return group
