"""The store of a broker whose log is that of its group.

See docs/reference/protocol/dledger.md, "Broker of a DLedger group". Only entries that the group has committed
are dispatched and become visible. Only the leader accepts messages. It does so once all entries of earlier
leaders are committed and dispatched, because then the end of each queue is known.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from mqproof.impl.dledger.changes import Change, Committed, Cut, SteppedDown
from mqproof.impl.dledger.codes import ResponseCode
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.entry_format import HEADER_BYTES
from mqproof.impl.dledger.ledger import LedgerConfig
from mqproof.impl.dledger.ledger_log import LedgerLog, stored_in
from mqproof.impl.dledger.node import Node
from mqproof.impl.dledger.rpc_bodies import Entry
from mqproof.impl.dledger.state import Role
from mqproof.impl.remoting.message import Message, offset_message_id
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.security.peer_network import PeerConfig
from mqproof.impl.store.appender import encode
from mqproof.impl.store.background import BackgroundTasks
from mqproof.impl.store.base import Store
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.dispatch import appended_record, emit_append, run_of, takes_queue_offset
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.checkpoint import DISTRUST, read_checkpoint
from mqproof.impl.store.files.consume_queue import QueueGapError, QueueKey
from mqproof.impl.store.group_commit import Done
from mqproof.impl.store.recovery import Parts, choose_start, cut_queue, recover_queues, report_lost_end
from mqproof.impl.store.results import PutResult, PutStatus, Recovery
from mqproof.spec.events import Kind

_log = logging.getLogger(__name__)

NOT_LEADING: Final = "this broker does not lead its group"

_ENTRIES_A_TURN: Final = 500
"""The maximum number of entries dispatched before other tasks run.

A restarted member may lag by many entries.
"""

_STATUS: Final = {
    ResponseCode.SUCCESS: PutStatus.PUT_OK,
    ResponseCode.NOT_LEADER: PutStatus.SERVICE_NOT_AVAILABLE,
    ResponseCode.LEADER_NOT_READY: PutStatus.SERVICE_NOT_AVAILABLE,
    ResponseCode.LEADER_TRANSFERRING: PutStatus.SERVICE_NOT_AVAILABLE,
    ResponseCode.LEADER_PENDING_FULL: PutStatus.OS_PAGECACHE_BUSY,
    ResponseCode.WAIT_QUORUM_ACK_TIMEOUT: PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH,
}
"""The put status for each code; any other code gives UNKNOWN_ERROR."""

_REASONS: Final = {
    ResponseCode.SUCCESS: "",
    ResponseCode.NOT_LEADER: NOT_LEADING,
    ResponseCode.LEADER_NOT_READY: "this broker has just been elected or deposed",
    ResponseCode.LEADER_TRANSFERRING: "this broker is transferring its leadership",
    ResponseCode.LEADER_PENDING_FULL: "[PC_SYNCHRONIZED]broker busy: too many messages wait for the group",
    ResponseCode.WAIT_QUORUM_ACK_TIMEOUT: "no quorum confirmed in time; the message may be stored later",
    ResponseCode.TERM_CHANGED: "the leader has changed, the message may be stored",
}


class LedgerStore(Store):
    """The store of one member of a group. `on_role` is called when `leads` has changed."""

    def __init__(
        self,
        directory: str,
        config: StoreConfig,
        group: GroupConfig,
        addresses: Mapping[str, Address],
        runtime: Runtime,
        events: EventLog | None = None,
        peers: PeerConfig | None = None,
    ) -> None:
        ledger_config = LedgerConfig(data_segment_bytes=config.commit_log_segment_bytes)
        self.node = Node(
            group, addresses, directory, runtime, events, ledger_config, listener=self, peers=peers
        )
        self._ledger_log = LedgerLog(self.node.ledger.data)
        super().__init__(directory, config, runtime, events, self._ledger_log)
        self.refusal = NOT_LEADING
        self.leads = False
        """Whether it accepts messages."""
        self.on_role: Callable[[], None] = lambda: None
        """Called when `leads` has changed. Must not block or raise."""
        self._committed: int
        """The index up to which the group has committed entries, as the last change said."""
        self._next_index: int
        """The index of the entry to process next, once it is committed; set by the recovery."""
        self._queue_offsets: dict[QueueKey, int] = {}
        """The next offset of each queue that this leader accepted messages for."""
        self._flushed = asyncio.Event()
        self._services = BackgroundTasks(
            config,
            None,
            self.flush_queues,
            self.write_checkpoint,
            self._clean,
            self.scrub,
            runtime.supervisor,
        )

    @property
    def has_all(self) -> bool:
        """Whether the member leads and a quorum confirmed that recently.

        A process that was paused for long may not know the next leader yet.
        """
        return self.leads and self.node.leads

    @property
    def term(self) -> int:
        """The term of the group, as far as this member knows."""
        return self.node.member.core.state.term

    # -- start and stop

    async def start(self) -> None:
        """Join the group. Raises StoreError, OSError for a failure of the disk or of the member's address."""
        self.begin()
        self._services.start()
        await self.node.start()

    async def transfer_leadership(self) -> None:
        """Before a clean stop, transfer the leadership if this member leads and another one can take over."""
        if self.leads and (code := await self.node.transfer_leadership()) is not ResponseCode.SUCCESS:
            _log.warning("%s is no longer the leader of its group: %s", self.node.config.self_id, code.name)

    async def stop(self) -> None:
        started, self._writable = self._writable, False
        await self._services.stop()
        if started:
            await self.flush_log()
            await self.flush_queues()
            await self.write_checkpoint()
        await self.node.stop()
        if started:
            self._mark_clean()
        self._release()

    def kill(self) -> None:
        self._writable = False
        self._services.kill()
        self.node.kill()

    def _open_log(self) -> None:
        ledger = self.node.ledger
        count = read_checkpoint(self._runtime.disk, self._layout.checkpoint).queue_count
        if count is not None and count != DISTRUST:
            ledger.known_begin, ledger.durable_pos = count.begin, count.position
        self.node.recover()

    def _recover(self, parts: Parts, abnormal: bool) -> Recovery:
        """Recover the queues. The ledger is already complete.

        Only a leader can report which part of the ledger is committed. But every entry that a queue refers to
        was committed, and so was every entry that a queue referred to at the checkpoint. Committed entries
        are never cut.
        """
        log, ledger = self._ledger_log, self.node.ledger
        log.end = ledger.end_pos
        report_lost_end(parts, log.end, ledger.bytes_cut)
        entries_cut = sum(cut_queue(queue, log) for queue in self._queues)
        counted = parts.checkpoint.queue_count
        known = [self._reaches(queue.key, queue.end) for queue in self._queues]
        log.end = max(*known, min(counted.position, log.end) if counted else 0, log.begin)
        start = min(choose_start(log, self._queues, parts.checkpoint), log.end)
        for _, stored in log.scan(start):
            if stored is not None:
                log.last_record, log.store_timestamp_ms = stored.commit_offset, stored.store_timestamp_ms
        log.durable_to(ledger.end_pos)
        self._next_index = ledger.index_from(log.end)
        self.node.member.core.state.known_committed = self._next_index - 1
        _, redispatched = recover_queues(parts, start)
        if self._events is not None:
            attrs = {"abnormal": str(abnormal).lower(), "flush_disk_type": "DLEDGER"}
            self._events.emit(Kind.RECOVER, commit_offset=log.end, attrs=attrs)
        return Recovery(abnormal, start, log.end, 0, redispatched, entries_cut)

    def _reaches(self, key: QueueKey, end: int) -> int:
        """Return the end position of the record that the last entry of a queue refers to."""
        units = self.units(*key, end - 1, 1) if end > 0 else []
        return units[0].commit_offset + units[0].size if units else 0

    # -- messages

    def put_soon(self, messages: Sequence[Message], done: Done, *, wait: bool = True) -> None:  # noqa: ARG002  # a group always waits for its quorum
        refused = self._refused() or self._take(messages, done)
        if refused is not None:
            done([refused] * len(messages))

    async def put_batch(self, messages: Sequence[Message], *, wait: bool = True) -> list[PutResult]:
        results: asyncio.Future[list[PutResult]] = asyncio.get_running_loop().create_future()

        def done(put: list[PutResult]) -> None:
            if not results.done():
                results.set_result(put)

        self.put_soon(messages, done, wait=wait)
        return await results

    def _take(self, messages: Sequence[Message], done: Done) -> PutResult | None:
        """Pass the messages to the group. Returns the refusal if it does not accept them, otherwise None."""
        config, log = self.config, self._ledger_log
        try:
            drafts = encode(messages, config.message_bytes_max, log.record_bytes_max)
        except ValueError as error:
            return PutResult(PutStatus.MESSAGE_ILLEGAL, reason=str(error))
        key = messages[0].topic, messages[0].queue_id
        queued = takes_queue_offset(messages[0].sys_flag)
        first = self.next_queue_offset(*key) if queued else 0
        log.staged_timestamp_ms = stored_ms = self.now_ms()
        bodies = [partial(_placed, draft, number, stored_ms) for number, draft in enumerate(drafts, first)]

        def settled(code: ResponseCode) -> None:
            if code is ResponseCode.SUCCESS:
                puts = zip(messages, entries, strict=True)
                done([_stored(*put, number, stored_ms) for number, put in enumerate(puts, first)])
            else:
                done([_not_stored(code)] * len(messages))

        code, entries = self.node.take(bodies, settled)
        if code is not ResponseCode.SUCCESS:
            return _not_stored(code)
        if queued:
            self._queue_offsets[key] = first + len(messages)
        return None

    def confirms_at_once(self, wait: bool) -> bool:  # noqa: ARG002
        return False

    def next_queue_offset(self, topic: str, queue_id: int) -> int:
        known = self._queue_offsets.get((topic, queue_id))
        return self.max_offset(topic, queue_id) if known is None else known

    def delete_topic(self, topic: str) -> None:
        """Keep the queues of a deleted topic.

        The log would not record their deletion. Another leader, or this one after a restart, would number the
        messages of a new topic of that name differently.
        """

    def adopt_deletions(self, deleted: Mapping[str, int]) -> list[str]:  # noqa: ARG002  # as above
        return []

    async def flush_log(self) -> None:
        end = self.node.ledger.end_index
        while not self.failure and self.node.member.core.state.durable < end:
            self._flushed.clear()
            await self._flushed.wait()

    async def clean(self, *, manually: bool = False) -> int:
        """Delete old segments, as any store does, but keep entries that not all members have durably.

        These stay whatever their age and the free space, because a member may request them.
        """
        kept, ledger = self.node.member.core.state.kept_by_all, self.node.ledger
        try:
            self._ledger_log.kept_by_all = ledger.position_of(kept) if kept >= ledger.begin_index else 0
            deleted = await super().clean(manually=manually)
            if deleted:
                await self._runtime.offload(ledger.forget_deleted().carry_out)
        except (OSError, StoreError) as error:
            self.node.fail(error)
            return 0
        return deleted

    # -- calls from the node

    def changed(self, change: Change) -> None:
        match change:
            case Committed(index):
                self._committed = index
                self._dispatch_committed()
            case Cut():
                self._ledger_log.durable_at_most(self.node.ledger.end_pos)
            case SteppedDown() if self.leads:
                self.leads = False
                self.refusal = NOT_LEADING
                self.on_role()
            case _:
                pass

    def flushed(self, end_pos: int) -> None:
        self._ledger_log.durable_to(end_pos)
        self._flushed.set()

    def failed(self, reason: str) -> None:
        self._fail(OSError(reason))
        self._flushed.set()
        if self.leads:
            self.leads = False
            self.on_role()

    # -- internals

    def _dispatch_committed(self) -> None:
        """Dispatch entries that the group has committed, a limited number at a time.

        Then a new leader may start.
        """
        if self.failure:
            return
        try:
            last = min(self._committed, self._next_index + _ENTRIES_A_TURN - 1)
            for index in range(self._next_index, last + 1):
                self._look_at(self.node.ledger.read(index))
            self._next_index = max(self._next_index, last + 1)
            self._dispatcher.run(self._log.end, self.on_arrival)
        except (OSError, StoreError, QueueGapError) as error:
            # It must not lead without its store.
            self.node.fail(error)
            return
        if self._next_index <= self._committed:
            go_on = self._runtime.supervisor.guarded("dispatch of the ledger", self._dispatch_committed)
            asyncio.get_running_loop().call_soon(go_on)
        else:
            self._begin_to_lead()

    def _look_at(self, entry: Entry) -> None:
        stored = stored_in(entry)
        self._ledger_log.advance(entry, stored)
        if stored is not None:
            appended = appended_record(stored, self.config.delay_levels_ms)
            self._dispatcher.add(run_of(appended))
            if self._events is not None:
                emit_append(self._events, appended)

    def _begin_to_lead(self) -> None:
        """Start to accept messages if the first entry of its own term is committed.

        Then all earlier entries are committed too, and everything is dispatched.
        """
        state = self.node.member.core.state
        if self.leads or state.role is not Role.LEADER or state.terms.at(state.commit) != state.term:
            return
        self._queue_offsets.clear()
        self.leads = True
        self.refusal = ""
        self.on_role()


def _placed(draft: bytearray, queue_offset: int, stored_ms: int, position: int) -> bytearray:
    record.place(draft, queue_offset, position, stored_ms)
    return draft


def _stored(message: Message, entry: Entry, queue_offset: int, stored_ms: int) -> PutResult:
    commit_offset = entry.pos + HEADER_BYTES
    message_id = offset_message_id(message.store_host, commit_offset)
    return PutResult(
        PutStatus.PUT_OK, queue_offset, commit_offset, message_id, "", len(entry.body), stored_ms
    )


def _not_stored(code: ResponseCode) -> PutResult:
    """Return the result for messages that are not stored, or not known to be stored."""
    status = _STATUS.get(code, PutStatus.UNKNOWN_ERROR)
    return PutResult(status, reason=_REASONS.get(code, f"the group answers {code.name}"))
