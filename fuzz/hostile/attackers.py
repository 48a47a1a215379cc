"""The attacks of a program: of a stranger at any port, and of a faulty member that has the group's secret."""

import json
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any, Final

from msgspec import structs

from mqproof.conformance.hosts.simulated import MASTER, MEMBERS, SLAVE
from mqproof.fuzz.hostile import crafted_requests, judge
from mqproof.fuzz.hostile.attacked_cluster import (
    ACCOUNT,
    ADMINISTRATOR,
    FAULTY,
    OWN_TOPIC,
    SECRET,
    STRANGER,
    AttackedCluster,
    Shape,
)
from mqproof.fuzz.hostile.stranger_connection import LyingSlave, Stranger, connect, connect_slave
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.dledger.codes import RequestCode as MemberCode
from mqproof.impl.dledger.codes import ResponseCode as MemberResult
from mqproof.impl.dledger.config import purpose_of
from mqproof.impl.dledger.limits import TERM_JUMP_MAX, TERM_MAX
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ConsumerData, Heartbeat, Subscription
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, encode, new_request
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address, Network
from mqproof.impl.runtime.security.peer_handshake import MAGIC

_ANSWER_S: Final = 20.0
"""Simulated time within which a request must be refused."""
_MIB: Final = 1 << 20
_BOMBS: Final = "bombs"
_BOMB_MIB: Final = (1, 8, 24, 24, 33, 40)
_CROWD: Final = 1010
"""More connections than the share of an address."""
_SLAVES: Final = 80
"""More connections than a master keeps of slaves, or of peers that have not proved themselves."""
_UNFINISHED: Final = 2
_LONG_PULLS: Final = 20
_LONG_BYTES: Final = 900_000
_MEMBERSHIPS: Final = 8
_SUBSCRIPTIONS: Final = 15
_SUBSCRIPTION: Final = "a||" * 20_000
_FORGED: Final = Credentials("administrator", "not-the-secret-at-all")
_UNKNOWN: Final = Credentials("nobody-knows-me", "not-the-secret-at-all")
_HOW: Final = ("unsigned", "of a stranger", "with a wrong signature", "altered", "of an unknown account")


class Attackers:
    """All attackers of one run."""

    def __init__(self, cluster: AttackedCluster, checked: Counter[str]) -> None:
        self.consumer: PullConsumer | None = None
        """The honest consumer, which reads compressed bodies."""
        self.place = 0
        """The commit offset of an honest message."""
        self._cluster = cluster
        self._checked = checked
        self._connections: list[Stranger] = []
        self._slaves: list[LyingSlave] = []
        self._sent: list[bytes] = []
        """Everything that was sent to the port of clients, to be sent again."""
        self._networks: dict[str, Network] = {}

    @property
    def streamed_bytes(self) -> int:
        """The bytes of the log that strangers received."""
        return sum(slave.streamed_bytes for slave in self._slaves)

    async def attack(self, kind: int, choices: bytes) -> None:
        """Make one attack. Raises Finding."""
        attacks = _ATTACKS[self._cluster.shape]
        with suppress(OSError):  # a port that refuses the connection withstands the attack
            await attacks[kind % len(attacks)](self, choices)

    def leave(self) -> None:
        """Close all connections of the attackers."""
        for connection in [one.connection for one in self._connections]:
            connection.close()
        for connection in [one.connection for one in self._slaves]:
            connection.close()

    # -- connections

    def _clients_port(self) -> Address:
        node = self._cluster.attacked
        return Address(self._cluster.machines[node].host, self._cluster.config(node).port)

    async def _connected(self) -> Stranger:
        network = self._network(STRANGER)
        self._connections.append(await connect(network, self._clients_port()))
        return self._connections[-1]

    def _network(self, machine: str) -> Network:
        """Return the network of an attacker; that of the faulty member proves the secret."""
        if machine not in self._networks:
            runtime = self._cluster.machines[machine].runtime()
            group = self._cluster.config(self._cluster.nodes[0]).name
            self._networks[machine] = (
                runtime.peers(SECRET, "n2", purpose_of(group)) if machine == FAULTY else runtime.network
            )
        return self._networks[machine]

    def _write(self, stranger: Stranger, data: bytes) -> None:
        if len(data) < _MIB:
            self._sent.append(data)
        stranger.connection.write(data)

    async def _ask(self, request: Command) -> tuple[int | None, bool]:
        """Send a request on a new connection; return the response code, and whether it was closed."""
        stranger = await self._connected()
        self._write(stranger, encode(request))
        answer = await stranger.answer(request.opaque, _ANSWER_S)
        if not stranger.is_closed:
            stranger.connection.close()
        return (answer.code if answer else None), stranger.is_closed

    # -- at the port of clients

    async def beyond_limit(self, choices: bytes) -> None:
        """A request of any code with one value beyond its limit."""
        code = crafted_requests.CODES[choices[0] % len(crafted_requests.CODES)]
        crafted = crafted_requests.beyond_limit(code, choices[1], choices[2])
        if crafted is None:
            return
        request = crafted.request
        if self._cluster.shape is Shape.ACCOUNTS:
            request = ADMINISTRATOR.signed(request)
        result, is_closed = await self._ask(request)
        judge.fields_within_limits(crafted.about, result, is_closed=is_closed, checked=self._checked)

    async def bad_frame(self, choices: bytes) -> None:
        """A frame, header, body or name beyond its limit."""
        bad = crafted_requests.BAD_FRAMES[choices[0] % len(crafted_requests.BAD_FRAMES)](choices[1])
        stranger = await self._connected()
        self._write(stranger, bad.data)
        answer = await stranger.answer(bad.opaque, _ANSWER_S)
        judge.fields_within_limits(
            bad.about, answer.code if answer else None, is_closed=stranger.is_closed, checked=self._checked
        )

    async def valid(self, choices: bytes) -> None:
        """A valid request of any code; the connection stays open."""
        code = crafted_requests.CODES[choices[0] % len(crafted_requests.CODES)]
        self._write(await self._connected(), encode(crafted_requests.valid(code, {})))

    async def damaged(self, choices: bytes) -> None:
        """A valid request with one changed byte, or cut off."""
        code = crafted_requests.CODES[choices[0] % len(crafted_requests.CODES)]
        data = bytearray(encode(crafted_requests.valid(code, {})))
        at = int.from_bytes(choices[1:3], "big") % len(data)
        if choices[3] % 4:
            data[at] ^= 1 << choices[3] % 8
        else:
            del data[at:]
        self._write(await self._connected(), bytes(data))

    async def replayed(self, choices: bytes) -> None:
        """What was sent before, again and in another order."""
        chance = Random(choices)
        stranger = await self._connected()
        for data in chance.sample(self._sent, min(len(self._sent), 1 + choices[0] % 5)):
            self._write(stranger, data)

    async def held_pulls(self, choices: bytes) -> None:
        """Many pulls that wait, of one connection; those of the second kind have long headers."""
        is_long = choices[1] % 2 == 1
        header = headers.PullRequest(
            consumer_group="hostile", topic=OWN_TOPIC, queue_id=1, queue_offset=0, max_msg_nums=1,
            sys_flag=6, commit_offset=0, suspend_timeout_millis=20_000, sub_version=0, subscription="*",
        )  # fmt: skip
        fields = headers.write(header) | ({"x": "x" * _LONG_BYTES} if is_long else {})
        stranger = await self._connected()
        for _ in range(_LONG_PULLS if is_long else 1 + choices[0]):
            stranger.connection.write(encode(new_request(RequestCode.PULL_MESSAGE, fields)))

    async def unfinished(self, choices: bytes) -> None:
        """Connections that each leave a large frame unfinished."""
        size = (8 + choices[0] % 8) * _MIB
        for _ in range(_UNFINISHED):
            stranger = await self._connected()
            stranger.connection.write(size.to_bytes(4, "big") + bytes(size - 1000))

    async def many_names(self, choices: bytes) -> None:
        """Many new topics or groups."""
        stranger = await self._connected()
        for number in range(1 + choices[0] % 80):
            name = f"hostile_{choices[1]}_{number}"
            if choices[2] % 2:
                body = json.dumps({"groupName": name}).encode()
                request = new_request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)
            else:
                fields = headers.write(headers.UpdateTopicRequest(name, "TBW102", 1, 1, 6))
                request = new_request(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
            stranger.connection.write(encode(request))

    async def memberships(self, choices: bytes) -> None:
        """A client that joins groups with long subscriptions."""
        stranger = await self._connected()
        for number in range(_MEMBERSHIPS):
            subscriptions = [Subscription(f"S{each}", _SUBSCRIPTION) for each in range(_SUBSCRIPTIONS)]
            data = ConsumerData(f"hostile_{choices[0] % 4}_{number}", subscription_data_set=subscriptions)
            body = java_json.write(Heartbeat("hostile", [data]), standard=True)
            stranger.connection.write(encode(new_request(RequestCode.HEART_BEAT, {}, body)))

    async def crowd(self, _: bytes) -> None:
        """More connections than the share of an address."""
        for _number in range(_CROWD):
            await self._connected()

    async def bombs(self, choices: bytes) -> None:
        """Compressed bodies, complete or cut, which an honest consumer reads."""
        mib = _BOMB_MIB[choices[0] % len(_BOMB_MIB)]
        count = 1 + choices[1] % 6
        body = _compressed(mib)
        sys_flag = (0x301, 0x001, 0x201, 0x701)[choices[2] // 64 if choices[3] % 5 == 0 else 0]
        cut = 50 if choices[3] % 4 == 1 else 0
        header = headers.SendRequest("hostile", _BOMBS, "TBW102", 1, 0, sys_flag, 0, 0)
        store = self._cluster.brokers[MASTER].store
        first = store.max_offset(_BOMBS, 0)
        for _ in range(count):
            request = new_request(RequestCode.SEND_MESSAGE, headers.write(header), body[: len(body) - cut])
            await self._ask(request)
        # An attack that repeats what was sent stores messages, too.
        await self._read_bombs(range(first, store.max_offset(_BOMBS, 0)))

    async def _read_bombs(self, expected: range) -> None:
        assert self.consumer is not None, "the honest consumer has started"
        queue = MessageQueue(_BOMBS, self._cluster.config(MASTER).name, 0)
        answers: list[list[tuple[int, int]]] = []
        offset = expected.start
        with suppress(ClientError):
            while offset < expected.stop:
                result = await self.consumer.pull(queue, offset)
                answers.append([(one.queue_offset, len(one.message.body)) for one in result.messages])
                if result.next_offset <= offset:
                    break
                offset = result.next_offset
        judge.bodies_bounded([answer for answer in answers if answer], expected, self._checked)

    # -- without permission

    async def unpermitted(self, choices: bytes) -> None:
        """A request of any code without the permission for it."""
        code = crafted_requests.CODES[choices[0] % len(crafted_requests.CODES)]
        if choices[2] % 4 == 0:
            code = RequestCode.VIEW_MESSAGE_BY_ID
        names = {"topic": OWN_TOPIC} if choices[3] % 2 else {}
        request = crafted_requests.valid(code, {**names, "offset": str(self.place)})
        how = choices[1] % 5
        match how:
            case 1:
                request = ACCOUNT.signed(request)
            case 2:
                request = _FORGED.signed(request)
            case 3:
                request = structs.replace(ADMINISTRATOR.signed(request), body=request.body + b" altered")
            case 4:
                request = _UNKNOWN.signed(request)
        about = f"request {code} {_HOW[how]}"
        result, _ = await self._ask(request)
        judge.permission_required(about, result, self._checked)

    # -- at the port of slaves

    async def lying_slave(self, choices: bytes) -> None:
        """A stranger that acknowledges everything, with or without a false proof."""
        ha = self._cluster.brokers[MASTER].replicas.ha_address
        assert ha is not None, "a master with slaves has this port"
        position = (0, self.place, 1 << 62, -1)[choices[1] % 4]
        first = position.to_bytes(8, "big", signed=True)
        greeting = MAGIC + bytes(choices[2:3]) * 32 + b"\x01s"
        forms = (
            (first, False),
            (first + bytes(4), True),
            (greeting + bytes(32) + bytes(12), True),
            (MAGIC + bytes(33) + bytes(12), True),
            (bytes(choices) * 30, False),
        )
        data, has_checksums = forms[choices[0] % len(forms)]
        for _ in range(_SLAVES if choices[3] % 8 == 0 else 1):
            slave = await connect_slave(self._network(STRANGER), ha, data, has_checksums=has_checksums)
            self._slaves.append(slave)

    async def slave_away(self, _: bytes) -> None:
        """The slave cannot be reached until the next such attack. This is a fault, not an attack."""
        links = set(self._cluster.links(MASTER, SLAVE))
        self._cluster.internet.cut(links)
        self._cluster.internet.reset(*(self._cluster.machines[node].host for node in (MASTER, SLAVE)))

    async def slave_returns(self, _: bytes) -> None:
        self._cluster.internet.heal(set(self._cluster.links(MASTER, SLAVE)))

    # -- at the ports of members

    def _member(self, choice: int) -> tuple[str, dict[str, Any]]:
        """Return a member, and the common fields of a request to it in its own term."""
        node = MEMBERS[choice % len(MEMBERS)]
        state = self._cluster.group_store(node).node.member.core.state
        sender = MEMBERS[(choice + 1) % len(MEMBERS)]
        group = self._cluster.config(node).name
        common = {"group": group, "remoteId": node, "localId": sender, "leaderId": sender, "term": state.term}
        return node, {**common, "code": 200}

    async def _ask_member(self, node: str, request: Command, machine: str) -> tuple[int | None, bool]:
        address = self._cluster.config(node).membership.addresses[node]
        stranger = await connect(self._network(machine), address)
        self._connections.append(stranger)
        stranger.connection.write(encode(request))
        answer = await stranger.answer(request.opaque, _ANSWER_S)
        stranger.connection.close()
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return (answer.code if answer else None), stranger.is_closed
        code = int(json.loads(answer.body)["code"])
        return (0 if code == MemberResult.SUCCESS else code), stranger.is_closed

    async def member_beyond_limit(self, choices: bytes) -> None:
        """A request of the faulty member with one value beyond its limit."""
        node, common = self._member(choices[3])
        code = crafted_requests.MEMBER_CODES[choices[0] % len(crafted_requests.MEMBER_CODES)]
        crafted = crafted_requests.member_beyond_limit(code, choices[1], choices[2], common)
        result, is_closed = await self._ask_member(node, crafted.request, FAULTY)
        judge.fields_within_limits(crafted.about, result, is_closed=is_closed, checked=self._checked)

    async def member_far_term(self, choices: bytes) -> None:
        """A request of the faulty member with a term that no correct member can have."""
        node, common = self._member(choices[3])
        term = min(TERM_MAX, int(common["term"]) + TERM_JUMP_MAX + 1 + (1 << choices[0] % 62))
        code = (MemberCode.VOTE, MemberCode.HEART_BEAT, MemberCode.PUSH)[choices[1] % 3]
        more: dict[str, object] = {}
        if code == MemberCode.VOTE:
            more = {"ledgerEndIndex": 1 << 40, "ledgerEndTerm": term}
        elif code == MemberCode.PUSH:
            more = {"type": "COMMIT", "commitIndex": 0}
        request = crafted_requests.member_request(code, **{**common, "term": term, **more})
        result, is_closed = await self._ask_member(node, request, FAULTY)
        judge.fields_within_limits(
            f"term {term} at {node}", result, is_closed=is_closed, checked=self._checked
        )

    async def member_contradicts(self, choices: bytes) -> None:
        """Entries that contradict committed ones. The faulty member sends them as the leader of the term."""
        node, common = self._member(choices[3])
        state = self._cluster.group_store(node).node.member.core.state
        # The first entry is of the first term.
        if max(state.commit, state.known_committed) < 0 or state.term == 1 or state.leader in (None, node):
            return
        common |= {"localId": state.leader, "leaderId": state.leader}
        term = state.term
        entry = {
            "magic": 1, "size": 49, "index": 0, "term": term, "pos": 0, "channel": 0, "chainCrc": 0,
            "bodyCrc": 0, "body": "eA==",
        }  # fmt: skip
        fields = {"type": "APPEND", "preLogIndex": -1, "preLogTerm": 0, "batchEntry": [entry], "count": 1}
        request = crafted_requests.member_request(
            MemberCode.PUSH, **{**common, "term": term, **fields, "totalSize": 49}
        )
        result, is_closed = await self._ask_member(node, request, FAULTY)
        judge.fields_within_limits(
            f"an entry that contradicts a committed one at {node}", result,
            is_closed=is_closed, checked=self._checked,
        )  # fmt: skip

    async def member_votes(self, choices: bytes) -> None:
        """A vote of the faulty member in a near term. It may cause an election."""
        node, common = self._member(choices[3])
        request = crafted_requests.member_request(
            MemberCode.VOTE,
            **{**common, "term": int(common["term"]) + choices[0] % 3},
            ledgerEndIndex=choices[1] - 1,
            ledgerEndTerm=choices[2] % 4,
        )
        await self._ask_member(node, request, FAULTY)

    async def stranger_at_member(self, choices: bytes) -> None:
        """A stranger without the secret, with the term that would end all elections."""
        node, common = self._member(choices[3])
        request = crafted_requests.member_request(MemberCode.HEART_BEAT, **{**common, "term": TERM_MAX})
        result, is_closed = await self._ask_member(node, request, STRANGER)
        judge.fields_within_limits(
            f"a stranger at {node}", result, is_closed=is_closed, checked=self._checked
        )


@cache
def _compressed(mib: int) -> bytes:
    return zlib.compress(bytes(mib * _MIB))


Attack = Callable[[Attackers, bytes], Awaitable[None]]

_AT_CLIENTS_PORT: Final[tuple[Attack, ...]] = (
    Attackers.beyond_limit,
    *(Attackers.bad_frame,) * 2,
    Attackers.valid,
    Attackers.damaged,
    Attackers.replayed,
)

_ATTACKS: Final[dict[Shape, tuple[Attack, ...]]] = {
    Shape.BROKER: (
        *_AT_CLIENTS_PORT,
        Attackers.held_pulls,
        Attackers.unfinished,
        Attackers.many_names,
        Attackers.memberships,
        Attackers.crowd,
        *(Attackers.bombs,) * 4,
    ),
    Shape.ACCOUNTS: (
        Attackers.unpermitted,
        Attackers.unpermitted,
        Attackers.unpermitted,
        Attackers.beyond_limit,
        Attackers.damaged,
        Attackers.replayed,
    ),
    Shape.SLAVE: (
        Attackers.lying_slave,
        Attackers.lying_slave,
        Attackers.slave_away,
        Attackers.slave_returns,
        Attackers.beyond_limit,
        Attackers.damaged,
    ),
    Shape.GROUP: (
        Attackers.member_beyond_limit,
        Attackers.member_far_term,
        Attackers.member_contradicts,
        Attackers.member_votes,
        Attackers.stranger_at_member,
        Attackers.beyond_limit,
        Attackers.damaged,
    ),
}
"""The attacks by their numbers in programs, for each shape."""
