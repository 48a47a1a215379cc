"""A DLedger group of Apache's brokers as a target of the dledger suite: real processes, seen at their ports.

The released members differ from ours in their answers (docs/reference/protocol/dledger.md, "Released
members"): METADATA and GET have no term, no answer has the end of a log, and the leader writes the position
of each entry into its body. So RAFT-2 stays unknown, and bodies are compared without these bytes.
"""

import asyncio
import os
import random
import signal
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, release_of
from mqproof.conformance.adapters.apache.servers import ApacheServer, ApacheServerError
from mqproof.conformance.engine.targets import APACHE, TargetError
from mqproof.conformance.hosts.processes import free_ports
from mqproof.conformance.suites.dledger.steps import (
    Append,
    Calm,
    Claim,
    Entry,
    Fault,
    Life,
    Log,
    Operation,
    Read,
    Vote,
)
from mqproof.impl.dledger.codes import RequestCode, ResponseCode
from mqproof.impl.dledger.codes import Vote as VoteResult
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import new_request
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import production

MEMBERS: Final = ("n0", "n1", "n2")
_GROUP: Final = "released"
_STEPS: Final = 8
_CALM_S: Final = 120.0
"""The time after the last fault by which a leader must serve: processes start, and may share the machine."""
_POLL_S: Final = 0.5
_TIMEOUT_S: Final = 4.0
_FROZEN_S: Final = 10.0
"""Longer than the time after which the others elect a leader."""
_POSITION: Final = slice(28, 36)
"""The bytes of a body that a released leader overwrites."""
_FAR: Final = 1 << 40


class _Entry(msgspec.Struct):
    index: int
    term: int
    body: bytes


class _Answer(msgspec.Struct, rename="camel"):
    """The fields of all answers that are used."""

    code: int
    leader_id: str | None = None
    term: int = -1
    index: int = -1
    vote_result: str = ""
    entries: list[_Entry] = []


def live(target: str, seed: int) -> Life:
    """Run a group of the release and return the observations. The seed determines the steps, not their times.

    Raises:
        UnknownTargetError: there is no such release. TargetError: it is missing, or a server did not start.
    """
    release = release_of(target.removeprefix(APACHE))
    ports = dict(zip(MEMBERS, free_ports(len(MEMBERS)), strict=True))
    members = {name: Address("127.0.0.1", port) for name, port in ports.items()}
    with tempfile.TemporaryDirectory(prefix="mqproof-dledger-") as folder:
        try:
            names = servers.name_server(release, Path(folder))
            brokers = servers.group(release, Path(folder), names.address, _GROUP, ports)
            with servers.running(names, *brokers.values()):
                return asyncio.run(_watched(brokers, members, seed))
        except (ApacheMissingError, ApacheServerError) as error:
            raise TargetError(str(error)) from None


async def _watched(brokers: Mapping[str, ApacheServer], members: Mapping[str, Address], seed: int) -> Life:
    run = _Run(brokers, members, seed)
    try:
        return await run.watch()
    finally:
        await run.client.close()


class _Client:
    """Sends requests to the members, and records what their answers show."""

    def __init__(self, members: Mapping[str, Address]) -> None:
        self.operations: list[Operation] = []
        self._members = members
        self._client = RemotingClient(production(AsyncioNetwork()).remoting)

    async def close(self) -> None:
        await self._client.close()

    async def claim(self, member: str) -> Claim | None:
        """Ask which member leads, and in which term: that is in the answer to an old heartbeat."""
        before = await self._term(member)
        answer = await self._ask(member, RequestCode.METADATA)
        if answer is None or before is None or before != await self._term(member):
            return None
        claim = Claim(member, before, answer.leader_id)
        self.operations.append(claim)
        return claim

    async def _term(self, member: str) -> int | None:
        other = next(name for name in MEMBERS if name != member)
        answer = await self._ask(member, RequestCode.HEART_BEAT, localId=other, leaderId=other)
        return answer.term if answer is not None and answer.code == ResponseCode.EXPIRED_TERM else None

    async def append(self, member: str, body: bytes) -> bool:
        """Append an entry; return whether the leader acknowledged it."""
        answer = await self._ask(member, RequestCode.APPEND, body=b64encode(body).decode())
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return False
        self.operations.append(Append(member, answer.term, answer.index, _masked(body)))
        return True

    async def log(self, member: str) -> Log | None:
        """Read the whole committed log of a leader, whose term must not change meanwhile."""
        claim = await self.claim(member)
        entries: list[Entry] = []
        while claim is not None and claim.leader == member:
            answer = await self._ask(member, RequestCode.GET, beginIndex=len(entries))
            if answer is not None and answer.code == ResponseCode.SUCCESS and answer.entries:
                entry = answer.entries[0].term, _masked(answer.entries[0].body)
                self.operations.append(Read(member, claim.term, len(entries), entry))
                entries.append(entry)
            elif answer is None or answer.code != ResponseCode.INDEX_OUT_OF_RANGE:
                return None
            elif not entries or entries[-1][0] != claim.term:
                return None  # it has not committed an entry of its own term yet
            elif await self._term(member) == claim.term:
                log = Log(member, claim.term, tuple(entries))
                self.operations.append(log)
                return log
            else:
                return None
        return None

    async def ask_for_vote(self, member: str, term: int, candidate: str) -> None:
        """Ask for a vote, as a candidate with a better log than any member, until it is decided."""
        for _ in range(10):
            answer = await self._ask(
                member,
                RequestCode.VOTE,
                localId=candidate,
                leaderId=candidate,
                term=term,
                ledgerEndIndex=_FAR,
                ledgerEndTerm=term,
            )
            if answer is None or answer.vote_result != VoteResult.REJECT_TERM_NOT_READY:
                break
            await asyncio.sleep(0.05)
        if answer is not None and answer.vote_result == VoteResult.ACCEPT:
            self.operations.append(Vote(member, term, candidate))

    async def transfer(self, claim: Claim, member: str) -> None:
        """Let the leader transfer its leadership, as an operator."""
        assert claim.leader is not None
        await self._ask(
            claim.leader,
            RequestCode.LEADERSHIP_TRANSFER,
            transferId=claim.leader,
            transfereeId=member,
            term=claim.term,
        )

    async def _ask(self, member: str, code: RequestCode, **fields: Any) -> _Answer | None:
        body = {"group": _GROUP, "remoteId": member, "localId": "client", "term": -1, "code": 200, **fields}
        try:
            request = new_request(code, body=msgspec.json.encode(body))
            command = await self._client.invoke(self._members[member], request, _TIMEOUT_S)
            return msgspec.json.decode(command.body, type=_Answer)
        except (RemotingError, msgspec.DecodeError):
            return None


def _masked(body: bytes) -> bytes:
    return body[: _POSITION.start] + body[_POSITION.stop :]


class _Run:
    """The steps of one run and its faults."""

    def __init__(
        self, brokers: Mapping[str, ApacheServer], members: Mapping[str, Address], seed: int
    ) -> None:
        self.client = _Client(members)
        self._brokers = brokers
        self._down: set[str] = set()
        self._chance = random.Random(seed)
        self._bodies = 0

    async def watch(self) -> Life:
        await self._leader(_CALM_S)
        for _ in range(_STEPS):
            await self._append(self._chance.randint(1, 3))
            await self._step()
            for name in MEMBERS:
                await self.client.claim(name)
        await self._calm()
        return Life(tuple(self.client.operations))

    async def _step(self) -> None:
        drawn = self._chance.random()
        leader = await self._leader(_CALM_S)
        if leader is None or leader.leader is None:
            return
        others = [name for name in MEMBERS if name != leader.leader]
        if self._down:
            await self._restart()
        elif drawn < 0.3:
            self._kill(leader.leader)
        elif drawn < 0.45:
            self._kill(self._chance.choice(others))
        elif drawn < 0.65:
            await self._freeze(leader.leader)
        elif drawn < 0.85:
            member = self._chance.choice(others)
            for candidate in self._chance.sample([name for name in MEMBERS if name != member], 2):
                await self.client.ask_for_vote(member, leader.term + 1, candidate)
        else:
            self._note(f"{leader.leader} is asked to transfer its leadership")
            await self.client.transfer(leader, self._chance.choice(others))

    def _kill(self, name: str) -> None:
        self._brokers[name].kill()
        self._down.add(name)
        self._note(f"{name} is killed")

    async def _restart(self) -> None:
        for name in sorted(self._down):
            await asyncio.to_thread(self._brokers[name].start)
            self._note(f"{name} starts")
        self._down.clear()

    async def _freeze(self, name: str) -> None:
        process = self._brokers[name].pid
        os.killpg(process, signal.SIGSTOP)
        try:
            self._note(f"{name} is stopped for {_FROZEN_S:g} s")
            await asyncio.sleep(_FROZEN_S)
            await self._append(1)
        finally:
            os.killpg(process, signal.SIGCONT)
        await self.client.append(name, self._body())  # it may still think that it leads

    async def _append(self, count: int) -> bool:
        """Append to each member that says that it leads; return whether one acknowledged."""
        done = False
        for name in MEMBERS:
            claim = await self.client.claim(name)
            for _ in range(count if claim is not None and claim.leader == name else 0):
                done = await self.client.append(name, self._body()) or done
        return done

    def _body(self) -> bytes:
        self._bodies += 1
        return f"m{self._bodies}".encode().ljust(40, b".")

    async def _leader(self, seconds: float) -> Claim | None:
        """Return the claim of a member that says that it leads; None if there is none in time."""
        end_s = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end_s:
            for name in MEMBERS:
                claim = await self.client.claim(name)
                if claim is not None and claim.leader == name:
                    return claim
            await asyncio.sleep(_POLL_S)
        return None

    async def _calm(self) -> None:
        """End all faults, wait until the group serves, and read the log of each member as the leader."""
        await self._restart()
        self._note("all faults end")
        serves, end_s = False, asyncio.get_running_loop().time() + _CALM_S
        while not serves and asyncio.get_running_loop().time() < end_s:
            serves = await self._append(1)
            await asyncio.sleep(_POLL_S)
        self.client.operations.append(Calm(serves, ()))
        for name in MEMBERS if serves else ():
            await self._show(name)

    async def _show(self, name: str) -> None:
        """Let the member lead, by transfers, and read its whole log."""
        end_s = asyncio.get_running_loop().time() + _CALM_S
        while asyncio.get_running_loop().time() < end_s:
            leader = await self._leader(_CALM_S)
            if leader is None:
                return
            if leader.leader != name:
                await self.client.transfer(leader, name)
            elif await self._append(1) and await self.client.log(name):
                return
            await asyncio.sleep(_POLL_S)

    def _note(self, text: str) -> None:
        self.client.operations.append(Fault(text))
