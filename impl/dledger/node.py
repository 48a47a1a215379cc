"""Runs a member on a runtime: requests as remoting frames, syncs outside the loop, responses to clients."""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from mqproof.impl.dledger import events as member_events
from mqproof.impl.dledger import wire
from mqproof.impl.dledger.changes import Ballot, Change, Committed, Lacks, Refused, SteppedDown
from mqproof.impl.dledger.codes import RequestCode, ResponseCode
from mqproof.impl.dledger.config import GroupConfig, purpose_of
from mqproof.impl.dledger.ledger import Ledger, LedgerConfig
from mqproof.impl.dledger.member import Member
from mqproof.impl.dledger.pending import Pending
from mqproof.impl.dledger.rpc_bodies import (
    AppendRequest,
    AppendResponse,
    Entry,
    GetRequest,
    GetResponse,
    HeartBeatRequest,
    HeartBeatResponse,
    Message,
    MetadataRequest,
    MetadataResponse,
    PushRequest,
    PushResponse,
    Request,
    TransferRequest,
    TransferResponse,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.dledger.state import Role
from mqproof.impl.remoting import request_handler
from mqproof.impl.remoting.channel import Channel, ConnectError, RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.java_json import BodyError
from mqproof.impl.remoting.later import Later
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.notices import Notices
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.security.peer_network import PeerConfig, warn_if_open
from mqproof.impl.runtime.timed_call import TimedCall
from mqproof.impl.store.errors import StoreError

_log = logging.getLogger(__name__)

_RPC_S: Final = 3.0
_REPORT_S: Final = 60.0
_GROUP_REQUESTS: Final = (
    RequestCode.VOTE,
    RequestCode.HEART_BEAT,
    RequestCode.PUSH,
    RequestCode.LEADERSHIP_TRANSFER,
)
ACK_TIMEOUT_MS: Final = 2500.0
"""maxWaitAckTimeMs: after this time, the client gets a response that leaves the outcome open."""


Settled = Callable[[ResponseCode], None]
"""Called once with the final result of a client's entries. Must not raise."""


def _timed(settled: Settled) -> TimedCall[ResponseCode]:
    """Return the call for a client's entries that wait to be committed."""
    return TimedCall(settled, ACK_TIMEOUT_MS / 1000, ResponseCode.WAIT_QUORUM_ACK_TIMEOUT)


class _Asked(NamedTuple):
    """A member's request that waits for the core's response."""

    request: Request
    command: Command
    answer: Later
    until_s: float


class Listener(Protocol):
    """The object that depends on a node. Its methods must not block or raise."""

    def changed(self, change: Change) -> None:
        """Handle a change, right after it was carried out and before any client is notified."""
        ...

    def flushed(self, end_pos: int) -> None:
        """Handle that all entries before the position are durable here."""
        ...

    def failed(self, reason: str) -> None:
        """Handle that the node has left its group for good."""
        ...


class Node:
    """One member of a group, with `start` and `stop`. `addresses` has the addresses of all members.

    With a `listener`, it accepts entries only through `take`, not from clients over the network.
    """

    def __init__(
        self,
        config: GroupConfig,
        addresses: Mapping[str, Address],
        directory: str,
        runtime: Runtime,
        events: EventLog | None = None,
        ledger_config: LedgerConfig | None = None,
        listener: Listener | None = None,
        peers: PeerConfig | None = None,
    ) -> None:
        self.config = config
        self._addresses = dict(addresses)
        self._directory = f"{directory}/dledger-{config.self_id}"
        self._runtime = runtime
        self._events = events
        self._listener = listener
        self.ledger = Ledger(runtime.disk, self._directory, ledger_config or LedgerConfig())
        self._peers = peers or PeerConfig()
        name = f"{config.group}-{config.self_id}"
        self.network = network = runtime.peers(self._peers, name, purpose_of(config.group))
        processors: dict[int, Callable[..., object]] = dict.fromkeys(_GROUP_REQUESTS, self._asked)
        processors |= {
            RequestCode.METADATA: self._metadata,
            RequestCode.GET: self._get,
        }
        if listener is None:
            processors[RequestCode.APPEND] = self._append
        self._server = RemotingServer(
            network,
            request_handler.handler(processors),  # type: ignore[arg-type]
            connections_max=runtime.connections_max,
            supervisor=runtime.supervisor,
        )
        self._client = RemotingClient(network)
        self._inbox: deque[Callable[[float], None]] = deque()
        self._arrived = asyncio.Event()
        self._unsynced = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        """The timer that wakes this node.

        `_alarm_at` is its time in milliseconds, or that of the previous timer.
        """
        self._alarm_at: float
        self._answering: dict[int, _Asked] = {}
        """Requests waiting for a response, by the id of the request object, in order of arrival."""
        self._waiting: Pending[TimedCall[ResponseCode]] = Pending()
        self._tasks: set[asyncio.Task[None]] = set()
        self._transfers: set[asyncio.Future[ResponseCode]] = set()
        """Futures that wait for the result of a leadership transfer."""
        self._notices = Notices(_log, _REPORT_S)
        self._is_flushing = False
        self._is_stepping = False
        self._taken: list[Entry] | None = None
        """The entries of the current `take` call, as they are written."""
        self.failure: Exception | None = None
        """The disk failure that ended this node. It has sent no responses since."""

    @property
    def member(self) -> Member:
        """The member, once it was started."""
        assert self._member is not None, "the node was not started"
        return self._member

    _member: Member | None = None

    def recover(self) -> None:
        """Create the member from the files on its disk.

        Raises:
            StoreError: the files cannot be used.
            OSError: the disk failed.
        """
        self._member = Member(
            self.config,
            self._runtime.disk,
            self._directory,
            self._runtime.random,
            self._now_ms(),
            self._on_change,
            self.ledger,
        )
        if self._events:
            member_events.emit_start(self._events, self._member.core)

    async def start(self) -> Address:
        """Recover, unless that was done; then listen and take part.

        Raises:
            StoreError: the files cannot be used.
            OSError: the disk failed, or the address cannot be used.
        """
        if self._member is None:
            self.recover()
        own = self._addresses[self.config.self_id]
        address = await self._server.start(own.host, own.port)
        warn_if_open(self._peers, address, "DLedger", "acts as a member of the group")
        self._addresses[self.config.self_id] = address
        self._supervise("flush of the ledger", self._flushes())
        self._supervise("DLedger member", self._run())
        return address

    def know(self, addresses: Mapping[str, Address]) -> None:
        """Set the members' addresses once all of them listen, for ports that were chosen automatically."""
        self._addresses = dict(addresses)

    def kill(self) -> None:
        """End a simulated process: everything stops where it is, and no response is sent."""
        for task in self._tasks:
            task.cancel()
        self._server.kill()
        self._client.abort()

    async def stop(self) -> None:
        """Stop taking part. Pending requests get no response."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._fail_waiting(ResponseCode.TERM_CHANGED)
        await self._client.close()
        await self._server.stop(drain_s=0.0)
        if self._member is not None:
            try:
                if self.failure is None:
                    self.ledger.write_index()
            except OSError as error:
                self.fail(error)
            self._member.close()

    async def append(self, body: object) -> tuple[ResponseCode, Entry | None]:
        """Accept an entry for a client and wait until it is committed.

        Returns SUCCESS, or a refusal with nothing stored. WAIT_QUORUM_ACK_TIMEOUT and TERM_CHANGED mean that
        the entry may or may not be committed. `body` is bytes, or a function that returns them, given the
        position of the body.
        """
        settled: asyncio.Future[ResponseCode] = asyncio.get_running_loop().create_future()

        def settle(code: ResponseCode) -> None:
            if code is ResponseCode.SUCCESS and self._events:
                member_events.emit_answer(self._events, entries[0].index, entries[0].term)
            if not settled.done():
                settled.set_result(code)

        code, entries = self.take([body], settle)
        return (await settled, entries[0]) if entries else (code, None)

    def take(self, bodies: Sequence[object], settled: Settled) -> tuple[ResponseCode, list[Entry]]:
        """Accept entries of one client together, without waiting for the commit.

        Returns SUCCESS and the entries as they are in the ledger; `settled` is called later. Otherwise
        returns the reason why no entry was accepted.
        """
        if self.failure is not None:
            return ResponseCode.DISK_ERROR, []
        if self._is_stepping:  # the changes so far are not carried out yet, so none may be added
            return ResponseCode.LEADER_NOT_READY, []
        code, last = self.member.core.append_all(bodies, self._now_ms())
        self._put(lambda _: None)  # carry out the other changes, and send, after this turn of the loop
        if code is not ResponseCode.SUCCESS:
            return code, []
        self._taken = []
        try:
            self._carry_out_all_but_ballots()
        except (OSError, StoreError) as error:
            self.fail(error)
            return ResponseCode.DISK_ERROR, []
        taken, self._taken = self._taken, None
        self._waiting.add(last, taken[-1].term, _timed(settled))
        return code, taken

    async def transfer_leadership(self, member: str | None = None) -> ResponseCode:
        """Transfer the leadership to a member, or to a suitable one if None, and wait for the result.

        Returns SUCCESS when the member leads, TAKE_LEADERSHIP_FAILED, or the reason why it was not tried.
        """
        core = self.member.core
        to = member or core.successor(self._now_ms())
        if self.failure is not None or self._is_stepping or (to is None and core.state.role is Role.LEADER):
            return ResponseCode.LEADER_NOT_READY
        code = core.transfer(to, self._now_ms()) if to is not None else ResponseCode.NOT_LEADER
        if code is not ResponseCode.SUCCESS:
            return code
        self._put(lambda _: None)  # the request is sent after this turn of the loop
        result: asyncio.Future[ResponseCode] = asyncio.get_running_loop().create_future()
        self._transfers.add(result)
        try:
            async with asyncio.timeout(self.config.transfer_ms / 1000):
                return await result
        except TimeoutError:
            return ResponseCode.TAKE_LEADERSHIP_FAILED
        finally:
            self._transfers.discard(result)

    # -- the loop around the member

    def _now_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000

    def _put(self, action: Callable[[float], None]) -> None:
        self._inbox.append(action)
        self._arrived.set()

    async def _run(self) -> None:
        core = self.member.core
        try:
            await self._step()
            while True:
                self._wake_by(core.deadline())
                await self._arrived.wait()
                self._arrived.clear()
                # A timer may fire early because of rounding.
                now = max(self._now_ms(), 0.0 if self._alarm else self._alarm_at)
                if now >= self._alarm_at and now >= core.deadline():
                    core.tick(now)
                    await self._step(now)
                while self._inbox:
                    self._inbox.popleft()(self._now_ms())
                    await self._step()
                self._give_up_answers(asyncio.get_running_loop().time())
        except (OSError, StoreError) as error:
            self.fail(error)
        except Exception as error:
            self.fail(error)  # it answers no member and no client from now on
            raise
        finally:
            if self._alarm is not None:
                self._alarm.cancel()

    def _wake_by(self, deadline: float) -> None:
        """Make sure that the node wakes by the deadline.

        Usually the deadline moves later again and again. A timer set for an earlier deadline is kept and
        fires too early.
        """
        if self._alarm is not None:
            if self._alarm_at <= deadline:
                return
            self._alarm.cancel()
        self._alarm_at = deadline
        self._alarm = asyncio.get_running_loop().call_at(deadline / 1000, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._arrived.set()

    async def _step(self, not_before: float = 0.0) -> None:
        """Carry out the changes caused by the last input.

        While a ballot is synced, the event loop continues, but this node does nothing else.
        """
        member = self.member
        self._is_stepping = True
        for change in member.core.take_changes():
            if isinstance(change, Ballot):
                ballot = change
                await self._runtime.offload(lambda ballot=ballot: member.persist(ballot))  # type: ignore[misc]
                self._on_change(change, None)
            else:
                member.carry_out(change)
        self._is_stepping = False
        requests, answers = member.take_messages(max(not_before, self._now_ms()))
        loop = asyncio.get_running_loop()
        for request in requests:
            loop.call_soon(self._ask, request)
        for request, response in answers:
            asked = self._answering.pop(id(request), None)
            if asked is not None:
                loop.call_soon(asked.answer.set, wire.encode_response(asked.command, response))
        if member.has_unsynced and not self._is_flushing:
            self._is_flushing = True
            self._unsynced.set()

    def _carry_out_all_but_ballots(self) -> None:
        """Carry out the changes of an append, which never changes the term."""
        for change in self.member.core.take_changes():
            assert not isinstance(change, Ballot), "an append changed the term"
            self.member.carry_out(change)

    def _on_change(self, change: Change, entry: Entry | None) -> None:
        if entry is not None and self._taken is not None:
            self._taken.append(entry)
        if self._events:
            member_events.emit_change(self._events, change, entry)
        if self._listener is not None:
            self._listener.changed(change)
        if isinstance(change, Committed):
            self._acknowledge(change.index)
        elif isinstance(change, SteppedDown):
            self._fail_waiting(ResponseCode.TERM_CHANGED)
        elif isinstance(change, Refused):
            text = f"{self.config.self_id} of {self.config.group} refused {change.why} (from {change.peer})"
            self._notices.warn(change.peer, text)
        elif isinstance(change, Lacks):
            _log.error(
                "%s of %s lacks entries that were deleted here, the ledger begins with %d:"
                " stop it, and give it a copy of another member's store",
                change.member,
                self.config.group,
                change.begin,
            )

    def _acknowledge(self, commit: int) -> None:
        """Notify clients whose entries this leader has committed in the term in which it accepted them."""
        for waiting in self._waiting.committed(commit, self.member.core.state.term):
            waiting.end(ResponseCode.SUCCESS)

    def _fail_waiting(self, code: ResponseCode) -> None:
        for waiting in self._waiting.drop():
            waiting.end(code)

    async def _flushes(self) -> None:
        """Make the ledger durable whenever it has unsynced entries, until that fails."""
        while self.failure is None:
            await self._unsynced.wait()
            self._unsynced.clear()
            await self._flush()

    async def _flush(self) -> None:
        flush = self.member.begin_flush()
        try:
            await self._runtime.offload(flush.sync)
        except OSError as error:
            self.fail(error)
            return
        if self._events and (index := self.member.ledger.end_flush(flush)) >= 0:
            member_events.emit_flush(self._events, index)

        def done(_now: float) -> None:
            self._is_flushing = False
            self.member.end_flush(flush)
            if self._listener is not None and self.ledger.end_flush(flush) >= 0:
                self._listener.flushed(flush.end_pos)

        self._put(done)

    def fail(self, error: Exception) -> None:
        """Stop the node. After a disk failure written data may be lost, so its reports are unreliable."""
        if self.failure is not None:
            return
        _log.error("%s of %s stops: %s", self.config.self_id, self.config.group, error)
        self.failure = error
        self._fail_waiting(ResponseCode.DISK_ERROR)
        self._give_up_answers(math.inf)
        for task in self._tasks:
            task.cancel()
        if self._listener is not None:
            self._listener.failed(str(error))

    def _supervise(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._runtime.supervisor.run(name, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- the network

    def _ask(self, request: Request) -> None:
        """Send one request to a member. A missing response has no effect; only timeouts handle it."""
        command = wire.encode_request(request)
        answer = self._client.ask(self._addresses[request.remote_id], command, _RPC_S)
        answer.add_done_callback(partial(self._answered, request))

    def _answered(self, request: Request, answer: asyncio.Future[Command]) -> None:
        if answer.cancelled():
            return
        try:
            response = wire.decode_response(request, answer.result())
        except (RemotingError, BodyError) as error:
            _log.debug("%s did not answer: %s", request.remote_id, error)
            if isinstance(error, ConnectError) and isinstance(request, TransferRequest):
                self._put(lambda _: self.member.core.unsent(request))
                self._end_transfers(ResponseCode.TAKE_LEADERSHIP_FAILED)
            return
        if isinstance(response, (VoteResponse, HeartBeatResponse, PushResponse, TransferResponse)):
            self._put(lambda now: self.member.core.answered(request, response, now))
        if isinstance(response, TransferResponse):
            took = response.code == ResponseCode.SUCCESS
            self._end_transfers(ResponseCode.SUCCESS if took else ResponseCode.TAKE_LEADERSHIP_FAILED)

    def _end_transfers(self, code: ResponseCode) -> None:
        for waiting in self._transfers:
            if not waiting.done():
                waiting.set_result(code)

    def _asked(self, command: Command, _channel: Channel) -> Later | Awaitable[Command] | None:
        """Handle a member's request. The core decides when to respond; after 3 s the request is dropped."""
        request = wire.decode_request(command)
        assert isinstance(request, (VoteRequest, HeartBeatRequest, PushRequest, TransferRequest))
        if self.failure is not None:
            return None
        if isinstance(request, TransferRequest) and request.transfer_id == self.config.self_id:
            return self._transfer_requested(command, request)
        answer = Later()
        until_s = asyncio.get_running_loop().time() + _RPC_S
        self._answering[id(request)] = _Asked(request, command, answer, until_s)
        self._put(lambda now: self.member.core.handle(request, now))
        return answer

    def _give_up_answers(self, now_s: float) -> None:
        """Drop requests whose time is over. The node wakes more often than that."""
        while self._answering:
            key, asked = next(iter(self._answering.items()))
            if now_s < asked.until_s:
                return
            del self._answering[key]
            asked.answer.set(None)

    async def _transfer_requested(self, command: Command, request: TransferRequest) -> Command:
        """Handle an operator's request to transfer the leadership. The operator is not a member."""
        if request.group != self.config.group:
            code = ResponseCode.UNKNOWN_GROUP
        elif request.remote_id != self.config.self_id or request.transferee_id is None:
            code = ResponseCode.UNKNOWN_MEMBER
        else:
            code = await self.transfer_leadership(request.transferee_id)
        return wire.encode_response(command, self._answer(request, TransferResponse, code))

    # -- clients

    async def _append(self, command: Command, _channel: Channel) -> Command:
        request = wire.decode_request(command)
        assert isinstance(request, AppendRequest)
        code, entry = await self.append(request.body)
        index, pos = (entry.index, entry.pos) if entry and code is ResponseCode.SUCCESS else (-1, -1)
        return wire.encode_response(
            command, self._answer(request, AppendResponse, code, index=index, pos=pos)
        )

    def _get(self, command: Command, _channel: Channel) -> Command:
        """Return a committed entry, if this member leads."""
        request = wire.decode_request(command)
        assert isinstance(request, GetRequest)
        core = self.member.core
        if self.failure is not None or not core.leads(self._now_ms()):
            answer = self._answer(request, GetResponse, ResponseCode.NOT_LEADER)
        elif 0 <= request.begin_index < self.ledger.begin_index:
            answer = self._answer(request, GetResponse, ResponseCode.INDEX_LESS_THAN_LOCAL_BEGIN)
        elif not 0 <= request.begin_index <= core.state.commit:
            answer = self._answer(request, GetResponse, ResponseCode.INDEX_OUT_OF_RANGE)
        else:
            entry = self.member.ledger.read(request.begin_index)
            answer = self._answer(request, GetResponse, ResponseCode.SUCCESS, entries=(entry,))
        return wire.encode_response(command, answer)

    def _metadata(self, command: Command, _channel: Channel) -> Command:
        request = wire.decode_request(command)
        assert isinstance(request, MetadataRequest)
        peers = {name: str(address) for name, address in self._addresses.items()}
        return wire.encode_response(
            command, self._answer(request, MetadataResponse, ResponseCode.SUCCESS, peers=peers)
        )

    def _answer(
        self, request: Message, kind: Callable[..., Message], code: ResponseCode, **fields: object
    ) -> Message:
        state = self.member.core.state
        return kind(
            group=self.config.group,
            remote_id=request.local_id,
            local_id=self.config.self_id,
            leader_id=state.leader,
            term=state.term,
            code=code,
            **fields,
        )

    @property
    def leads(self) -> bool:
        """Whether the member leads and reaches a quorum."""
        return self.failure is None and self.member.core.leads(self._now_ms())

    @property
    def role(self) -> Role:
        return self.member.core.state.role
