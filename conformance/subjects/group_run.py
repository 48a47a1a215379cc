"""One random run of a DLedger group with the observations of a client at its members' ports.

The client, `GroupClient`, uses any network. The group is ours, in simulated time.
"""

import asyncio
import random
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TypeVar

from mqproof.conformance.adapters import simulated_loops
from mqproof.conformance.engine.value_pairs import Row, row_of
from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hosts.simulated import Machine
from mqproof.conformance.subjects import own_group
from mqproof.conformance.suites.dledger import dimensions
from mqproof.conformance.suites.dledger.dimensions import BODY_BYTES, COUNTS, DIMENSIONS, LASTS_S
from mqproof.conformance.suites.dledger.steps import (
    Append,
    Calm,
    Claim,
    End,
    Entry,
    Fault,
    Life,
    Log,
    Operation,
    Read,
    Vote,
)
from mqproof.impl.dledger import wire
from mqproof.impl.dledger.codes import PushType, ResponseCode
from mqproof.impl.dledger.codes import Vote as VoteResult
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.ledger import LedgerConfig
from mqproof.impl.dledger.node import Node
from mqproof.impl.dledger.rpc_bodies import (
    AppendRequest,
    AppendResponse,
    GetRequest,
    GetResponse,
    Message,
    MetadataRequest,
    MetadataResponse,
    PushRequest,
    PushResponse,
    TransferRequest,
    TransferResponse,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.java_json import BodyError
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.simulated_internet import Link, SimulatedInternet
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

M = TypeVar("M", bound=Message)

GROUP: Final = "g"
MEMBERS: Final = ("n0", "n1", "n2")
STEPS: Final = 24
CALM_S: Final = 60.0
"""The time after the last fault by which a leader must serve and all logs must be equal."""
_PORT: Final = 40911
_CLIENT: Final = "client"
_TIMEOUT_S: Final = 4.0
"""Longer than a leader lets a client wait for a quorum."""
_LEADS_S: Final = 15.0
_POLL_S: Final = 0.25
_FAR: Final = 1 << 40
"""The index of an entry beyond the end of any log."""
_LEDGER: Final = LedgerConfig(data_segment_bytes=8192, index_segment_bytes=1024 * 32)
_ANSWERED_AFTER_S: Final = 2.8
"""How late the answers to heartbeats are: a little less than the time after which they are not accepted."""
_CONFIRMED_CHANCE: Final = 0.5
"""How often a client waits for an entry that has no quorum at first."""
_LEASE_S: Final = 9.0
"""The time from a heartbeat until another member leads, with time to spare."""


class GroupClient:
    """Sends requests to the members of a group, and records what their answers show."""

    def __init__(self, group: str, members: Mapping[str, Address], runtime: Runtime) -> None:
        self.operations: list[Operation] = []
        self.members = dict(members)
        self._group = group
        self._runtime = runtime
        self._client = RemotingClient(runtime.remoting)

    async def close(self) -> None:
        await self._client.close()

    async def claim(self, member: str) -> Claim | None:
        """Ask which member leads."""
        answer = await self._ask(MetadataRequest(self._group, member, _CLIENT), MetadataResponse)
        if answer is None:
            return None
        claim = Claim(member, answer.term, answer.leader_id)
        self.operations.append(claim)
        return claim

    async def end(self, member: str) -> End | None:
        """Ask for the end of a member's log, as a leader of a term that is over."""
        request = PushRequest(self._group, member, self._other(member), term=0, type=PushType.COMPARE)
        answer = await self._ask(request, PushResponse)
        if answer is None or answer.code != ResponseCode.EXPIRED_TERM:
            return None
        end = End(member, answer.term, answer.leader_id, answer.end_index)
        self.operations.append(end)
        return end

    async def ask_for_vote(
        self, member: str, term: int, candidate: str, leader: str | None = None
    ) -> VoteResult | None:
        """Ask for a vote as a candidate that has a better log than any member.

        A follower of the named leader does not wait for it.
        """
        request = VoteRequest(
            self._group, member, candidate, leader, term, ledger_end_index=_FAR, ledger_end_term=term
        )
        answer = await self._ask(request, VoteResponse)
        if answer is None:
            return None
        if answer.vote_result is VoteResult.ACCEPT:
            self.operations.append(Vote(member, term, candidate))
        return answer.vote_result

    async def append(self, member: str, body: bytes) -> ResponseCode | None:
        """Append an entry; return the code of the answer."""
        answer = await self._ask(AppendRequest(self._group, member, _CLIENT, body=body), AppendResponse)
        if answer is None:
            return None
        if answer.code == ResponseCode.SUCCESS:
            self.operations.append(Append(member, answer.term, answer.index, body))
        return ResponseCode(answer.code)

    async def read(self, member: str, index: int) -> Read | None:
        """Read a committed entry, if the member leads."""
        answer = await self._ask(GetRequest(self._group, member, _CLIENT, begin_index=index), GetResponse)
        if answer is None or answer.code not in (ResponseCode.SUCCESS, ResponseCode.INDEX_OUT_OF_RANGE):
            return None
        entry: Entry | None = None
        if answer.code == ResponseCode.SUCCESS and answer.entries:
            entry = answer.entries[0].term, answer.entries[0].body
        read = Read(member, answer.term, index, entry)
        self.operations.append(read)
        return read

    async def log(self, member: str) -> Log | None:
        """Read the whole committed log of a leader. Returns None if it does not lead all the time."""
        entries: list[Entry] = []
        while True:
            request = GetRequest(self._group, member, _CLIENT, begin_index=len(entries))
            answer = await self._ask(request, GetResponse)
            if answer is not None and answer.code == ResponseCode.SUCCESS and answer.entries:
                entries.append((answer.entries[0].term, answer.entries[0].body))
                continue
            if answer is None or answer.code != ResponseCode.INDEX_OUT_OF_RANGE:
                return None
            if not entries or entries[-1][0] != answer.term:
                await asyncio.sleep(_POLL_S)  # it has not committed an entry of its own term yet
                continue
            log = Log(member, answer.term, tuple(entries))
            self.operations.append(log)
            return log

    async def transfer(self, leader: str, member: str) -> bool:
        """Let the leader transfer its leadership, as an operator."""
        request = TransferRequest(self._group, leader, _CLIENT, transfer_id=leader, transferee_id=member)
        answer = await self._ask(request, TransferResponse)
        return answer is not None and answer.code == ResponseCode.SUCCESS

    def _other(self, member: str) -> str:
        return next(name for name in self.members if name != member)

    async def _ask(self, request: Message, kind: type[M]) -> M | None:
        """Return the answer; None if there is none."""
        address = self.members[request.remote_id]
        try:
            command = await self._client.invoke(address, wire.encode_request(request), _TIMEOUT_S)
            answer = wire.decode_response(request, command)
        except (RemotingError, BodyError):
            return None
        return answer if isinstance(answer, kind) else None


def live(seed: int) -> Life:
    """Run a group and return the observations; the seed determines everything."""
    loop = SimulatedLoop()

    async def main() -> Life:
        run = _Run(loop, seed)
        try:
            return await run.watch(row_of(DIMENSIONS, seed))
        finally:
            await run.stop()

    own = own_group.observed(seed)
    with expected_warnings("mqproof.impl"), simulated_loops.failures_reported():
        life = run_simulated(main(), loop)
    return Life((*own, *life.operations))


class _Run:
    """The group, the faults, and the steps."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self._loop = loop
        self._chance = random.Random(seed)
        self._internet = SimulatedInternet(random.Random(f"{seed} internet"))
        self._machines = {
            name: Machine(f"10.0.0.{number}", self._internet, loop, f"{seed} {name}")
            for number, name in enumerate((*MEMBERS, _CLIENT), 1)
        }
        self._addresses = {name: Address(self._machines[name].host, _PORT) for name in MEMBERS}
        self._nodes: dict[str, Node] = {}
        self._client = GroupClient(GROUP, self._addresses, self._machines[_CLIENT].runtime())
        self._bodies = 0

    # -- machines

    async def start(self, name: str) -> None:
        if name in self._nodes:
            return
        machine = self._machines[name]
        self._internet.power_on(machine.host)
        config = GroupConfig(GROUP, name, MEMBERS)
        node = Node(config, self._addresses, "/store", machine.runtime(), ledger_config=_LEDGER)
        await self._loop.create_task(node.start(), context=self._loop.context_of(machine.host))
        self._nodes[name] = node
        self._note(f"{name} starts")

    def kill(self, name: str, *, power: bool) -> None:
        machine = self._machines[name]
        if power:
            machine.disk.lose_power()
            self._internet.lose_power(machine.host)
        else:
            machine.disk.crash_process()
        self._nodes.pop(name).kill()
        self._note(f"{name} {'loses its power' if power else 'is killed'}")

    async def stop(self) -> None:
        await self._client.close()
        for node in self._nodes.values():
            await node.stop()

    def _note(self, text: str) -> None:
        self._client.operations.append(Fault(text))

    def _links(self, name: str) -> tuple[list[Link], list[Link]]:
        """Return the links from a member to the other members, and those back."""
        mine = self._machines[name].host
        others = [self._machines[other].host for other in MEMBERS if other != name]
        return [(mine, other) for other in others], [(other, mine) for other in others]

    # -- the run

    async def watch(self, row: Row) -> Life:
        """Perform the drawn steps, meet the row, end the faults, and return the observations."""
        for name in MEMBERS:
            await self.start(name)
        await self._leader(CALM_S)
        for _ in range(STEPS):
            await self._step()
            await self._look()
        await self._meet(row)
        await self._calm()
        return Life(tuple(self._client.operations))

    async def _step(self) -> None:
        chance, drawn = self._chance, self._chance.random()
        running = sorted(self._nodes)
        if drawn < 0.35:
            await self._append(chance.randint(1, 3))
        elif drawn < 0.5 and running:
            self.kill(chance.choice(running), power=chance.random() < 0.5)
        elif drawn < 0.62:
            for name in MEMBERS:
                await self.start(name)
        elif drawn < 0.72:
            await self._isolate_leader()
        elif drawn < 0.78:
            self._internet.heal()
            self._note("all links work again")
        elif drawn < 0.88 and running:
            await self._votes(chance.choice(running))
        elif drawn < 0.92:
            await self._answer_late()
        elif drawn < 0.96:
            await self._cut_one_link()
        else:
            await asyncio.sleep(chance.choice((1, 8)))

    async def _append(self, count: int, body_bytes: int = 0) -> bool:
        """Append to the members that say that they lead; return whether one acknowledged."""
        done = False
        for name in sorted(self._nodes):
            claim = await self._client.claim(name)
            for _ in range(count if claim is not None and claim.leader == name else 0):
                self._bodies += 1
                body = f"m{self._bodies}".encode().ljust(body_bytes, b".")
                code = await self._client.append(name, body)
                done = done or code is ResponseCode.SUCCESS
        return done

    async def _isolate_leader(self) -> None:
        """Cut a leader off from the others, append to it, and wait until another one leads or not."""
        leader = await self._leader(0)
        if leader is None:
            return
        there, back = self._links(leader)
        self._internet.cut((*there, *back))
        self._note(f"{leader} is cut off from the others")
        for _ in range(2):
            self._bodies += 1
            appending = asyncio.create_task(self._client.append(leader, f"m{self._bodies}".encode()))
            await asyncio.sleep(_POLL_S)
            await self._client.end(leader)  # the leader has the entry, and no quorum confirms it
            await appending
        await self._client.end(leader)
        await asyncio.sleep(self._chance.choice((0, 8)))
        await self._append(1)

    async def _answer_late(self) -> None:
        """Delay the answers to a leader's heartbeats, cut it off, and read from all members meanwhile."""
        for name in MEMBERS:
            await self.start(name)
        self._internet.heal()
        leader = await self._leader(CALM_S)
        if leader is None:
            return
        await self._append(1)
        there, back = self._links(leader)
        self._note(f"the answers to {leader} are late, and then it is cut off from the others")
        self._internet.cut(back)
        await asyncio.sleep(2.1)  # each follower receives a heartbeat
        self._internet.cut(there)
        await asyncio.sleep(_ANSWERED_AFTER_S - 2.1)
        self._internet.heal(back)
        await asyncio.sleep(0.05)
        self._internet.cut(back)
        await self._read_from_all()
        self._internet.heal()

    async def _cut_one_link(self) -> None:
        """Cut one follower off from its leader only, and read from all members meanwhile."""
        leader = await self._all_run()
        if leader is None:
            return
        await self._append(1)
        await asyncio.sleep(_POLL_S)  # the follower has the entry
        follower = self._chance.choice([name for name in MEMBERS if name != leader])
        hosts = self._machines[leader].host, self._machines[follower].host
        self._note(f"{leader} and {follower} do not reach each other")
        self._internet.cut((hosts, hosts[::-1]))
        await self._read_from_all()
        self._internet.heal()

    async def _read_from_all(self) -> None:
        """Read from all members until another one than the leader may lead."""
        end_s = self._loop.time() + _LEASE_S
        while self._loop.time() < end_s:
            for name in MEMBERS:
                await self._client.read(name, 0)
            await asyncio.sleep(0.1)

    async def _votes(self, member: str) -> None:
        """Ask a member for its vote in a new term as two candidates, with a kill in between."""
        claim = await self._client.claim(member)
        if claim is None:
            return
        first, second = self._chance.sample([name for name in MEMBERS if name != member], 2)
        term = claim.term + 1
        await self._client.ask_for_vote(member, term, first, claim.leader)  # it enters the term
        await self._client.ask_for_vote(member, term, first)
        if self._chance.random() < 0.5:
            self.kill(member, power=self._chance.random() < 0.5)
            await self.start(member)
        await self._client.ask_for_vote(member, term, second)

    async def _look(self) -> None:
        for name in sorted(self._nodes):
            await self._client.claim(name)
            await self._client.end(name)
            await self._client.read(name, self._chance.randint(0, 3 + self._bodies))

    # -- the row

    async def _meet(self, row: Row) -> None:
        """Let all members run, inject the fault of the row, and end it."""
        leader = await self._all_run()
        entries, unconfirmed = row[dimensions.ENTRIES], row[dimensions.UNCONFIRMED] == "some"
        if leader is None:
            return
        self._note(f"entries before the fault: {entries}")
        await self._append(COUNTS[entries], BODY_BYTES[entries])
        if unconfirmed:
            await self._append_alone(leader)
        self._note(f"{'an' if unconfirmed else 'no'} entry lacks a quorum")
        self._fail(row[dimensions.FAULT], leader)
        await asyncio.sleep(LASTS_S[row[dimensions.LASTS]])
        self._note(f"the fault lasts {row[dimensions.LASTS]}")
        await self._look()
        await self._then(row[dimensions.AFTERWARDS])

    async def _all_run(self) -> str | None:
        """End all faults, and return the leader."""
        self._internet.heal()
        for name in MEMBERS:
            await self.start(name)
        return await self._leader(CALM_S)

    async def _append_alone(self, leader: str) -> None:
        """Append an entry that only the leader has."""
        there, _ = self._links(leader)
        self._internet.cut(there)
        self._bodies += 1
        appending = asyncio.create_task(self._client.append(leader, f"m{self._bodies}".encode()))
        await asyncio.sleep(_POLL_S)
        await self._client.end(leader)
        self._internet.heal(there)
        if self._chance.random() < _CONFIRMED_CHANCE:
            await appending
        else:
            appending.cancel()

    def _fail(self, fault: str, leader: str) -> None:
        follower = self._chance.choice([name for name in MEMBERS if name != leader])
        chosen = leader if fault.startswith("leader") else follower
        if fault.endswith("cut off"):
            there, back = self._links(chosen)
            self._internet.cut((*there, *back))
        else:
            for name in MEMBERS if fault.startswith("whole") else (chosen,):
                self.kill(name, power=fault.endswith("power"))
        self._note(f"the {fault}")

    async def _then(self, what: str) -> None:
        leader = await self._all_run()
        if leader is None:
            return
        self._note(f"afterwards {what}")
        other = self._chance.choice([name for name in MEMBERS if name != leader])
        match what:
            case "a transfer":
                await self._client.transfer(leader, other)
            case "two candidates":
                await self._votes(other)
            case "the leader is killed":
                self.kill(leader, power=False)
                await self._leader(CALM_S)
        await self._append(1)
        await self._look()

    # -- after the faults

    async def _calm(self) -> None:
        """End all faults, wait until the group serves and its logs are equal, and let each member lead."""
        self._internet.heal()
        for name in MEMBERS:
            await self.start(name)
        self._note("all faults end")
        serves, ends = await self._settled()
        self._client.operations.append(Calm(serves, ends))
        if serves:
            for name in MEMBERS:
                await self._show(name)

    async def _settled(self) -> tuple[bool, tuple[tuple[str, int], ...]]:
        serves, end_s = False, self._loop.time() + CALM_S
        while True:
            serves = serves or await self._append(1)
            await asyncio.sleep(_POLL_S)
            ends = tuple([(name, end.index) for name in MEMBERS if (end := await self._client.end(name))])
            equal = len(ends) == len(MEMBERS) and len({index for _, index in ends}) == 1
            if (serves and equal) or self._loop.time() > end_s:
                return serves, ends

    async def _show(self, name: str) -> None:
        """Let the member lead, and read its whole log."""
        end_s = self._loop.time() + _LEADS_S
        while self._loop.time() < end_s:
            leader = await self._leader(_LEADS_S)
            if leader is None:
                return
            if leader == name or await self._client.transfer(leader, name):
                with suppress(TimeoutError):  # a leader that commits nothing shows no log
                    async with asyncio.timeout(_LEADS_S):
                        if await self._client.log(name):
                            return
            await asyncio.sleep(_POLL_S)

    async def _leader(self, seconds: float) -> str | None:
        """Return the member of the latest term that leads, by its own account; wait for one if needed."""
        end_s = self._loop.time() + seconds
        while True:
            claims = [claim for name in sorted(self._nodes) if (claim := await self._client.claim(name))]
            leading = [claim for claim in claims if claim.leader == claim.member]
            if leading:
                return max(leading, key=lambda claim: claim.term).member
            if self._loop.time() >= end_s:
                return None
            await asyncio.sleep(_POLL_S)
