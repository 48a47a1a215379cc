"""Mutants of the brokers of a cluster.

They are the mutants of conformance, defects in the rules for communication between machines, and some defects
of group members.
"""

import asyncio
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.mutants import flush, replication
from mqproof.conformance.mutants.mutant import Mutant as ImplMutant
from mqproof.fuzz.defects import dledger
from mqproof.fuzz.defects.defect import Mutant, as_of_target
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.replication.client import SlaveClient
from mqproof.impl.replication.follow import Follow
from mqproof.impl.replication.stream import write_position
from mqproof.impl.replication.waits import ReplicaWaits
from mqproof.impl.store import recovery
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.results import PutStatus

_TARGET: Final = "cluster"
_received = Follow.received
_keep = Follow._keep
_commit = OffsetTable.commit
_find_end = recovery.find_end

_ELSEWHERE: Final = frozenset(
    {
        "dispatch-before-flush",  # a consumer must read in the few milliseconds before the crash
        "logs-compared-as-shipped",  # a configuration, which a cluster does not choose
        "offsets-not-persisted",  # a violation that no named invariant covers
        "recovered-not-synced",  # the machine must crash twice before anything is flushed
        "commit-goes-back",  # also needs commits to a master that lags behind what its consumers have read
        "slave-never-hangs-up",  # the link must stay cut for a long time, with no broker restart after it
        "torn-text-accepted",  # a record must be torn in its last bytes
    }
)
"""Mutants of conformance that a cluster run does not reveal, or seldom reveals."""

_OF_BROKERS: Final = (
    "VoteNotPersisted",
    "MajorityOfTheHeard",
    "CommitBeyondTheEnd",
    "AnotherBodyWritten",
    "LeaderCutsItsTail",
    "LeaderCountsItself",
    "NeverStandsAgain",
    "CommitNotLearned",
)
"""Defects of group members that are also tested in whole brokers."""

_NOTICED_BY: Final = {
    "not-dispatched-again": "SyncAckedDurable",
    "replica-status-lost": "SyncAckedOnSlave",
}
"""Mutants for which an invariant other than conformance's is violated first."""


def _ok_in_the_end(_waits: ReplicaWaits, answer: Any) -> None:
    if not answer.done():
        answer.set_result(PutStatus.PUT_OK)


def _acknowledge_and_keep_later(follow: Any, data: bytes) -> bytes:
    """Acknowledge received data immediately, and write it only when more data arrives."""
    if "_late" not in vars(follow):
        follow._late = b""
        follow._keep = lambda body: _keep_later(follow, body)
        follow.report = lambda: write_position(follow._position if follow.verified else follow.first_position)
    before = follow._position
    answer = _received(follow, data)
    return answer or (follow.report() if follow._position != before else b"")


def _keep_later(follow: Any, body: bytes) -> None:
    late, follow._late = follow._late, body
    follow._position -= len(late)
    _keep(follow, late)
    follow._position += len(body)


def _never_acknowledged(_waits: ReplicaWaits) -> None:
    """Do nothing, so that a send waiting for a slave never receives the acknowledgement."""


async def _at_the_end(queue: MessageQueue, calls: GroupRequests, *_: object) -> int:
    return await calls.max_offset(queue)


async def _connects_once(client: SlaveClient) -> None:
    """Connect to the master once and never again after the connection ends."""
    while client.master is None or not await client._follow(client.master):
        await asyncio.sleep(1)
    await asyncio.Event().wait()


def _commit_for_all(offsets: OffsetTable, group: str, topic: str, queue_id: int, offset: int) -> None:
    for each in {queue_id, *offsets.of_group(group, topic)}:
        _commit(offsets, group, topic, each, offset)


def _all_but_the_last_segment(log: CommitLog, *_: object, **__: object) -> int:
    return log.segments.starts[-1]


def _keep_the_torn_record(log: CommitLog, start: int) -> int:
    end = _find_end(log, start)
    size, magic = record.peek(log.read(end, 8))
    if magic in (record.MAGIC_V1, record.MAGIC_V2) and size < log.segments.segment_bytes:
        log.end = end + size
    return log.end


def _of_brokers(member: Mutant) -> Mutant:
    """Return a group member's defect as a mutant of whole brokers."""
    return replace(member, name=f"Brokers{member.name}", target=_TARGET)


def _as_here(theirs: ImplMutant) -> Mutant:
    return as_of_target(theirs, _TARGET, _NOTICED_BY)


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Any) -> Mutant:
    return Mutant(name, defect, _TARGET, breaks, f"mqproof.impl.{where}", wrong)


MUTANTS: Final = (
    *(
        _as_here(each)
        for each in (*flush.MUTANTS.values(), *replication.MUTANTS.values())
        if each.name not in _ELSEWHERE
    ),
    _mutant(
        "OkOnTimeout",
        "a send whose slave is late is answered SEND_OK",
        "SyncAckedOnSlave",
        "replication.waits:ReplicaWaits._expire",
        _ok_in_the_end,
    ),
    _mutant(
        "AckAheadOfTheLog",
        "a slave acknowledges data on arrival and writes it only when more arrives",
        "SyncAckedOnSlave",
        "replication.follow:Follow.received",
        _acknowledge_and_keep_later,
    ),
    _mutant(
        "SlaveNeverHeard",
        "a send that waits for a slave is not answered when the slave acknowledges it",
        "SendAnswered",
        "replication.waits:ReplicaWaits.acked",
        _never_acknowledged,
    ),
    _mutant(
        "ConsumerStartsAtTheEnd",
        "a new group starts at the end of each queue",
        "AckedDelivered",
        "client.consuming.push_consumer:start_offset",
        _at_the_end,
    ),
    _mutant(
        "CommitForAllQueues",
        "a commit counts for every queue of its topic in which the group has committed",
        "OffsetMonotone",
        "broker.state.offsets:OffsetTable.commit",
        _commit_for_all,
    ),
    _mutant(
        "SlaveConnectsOnce",
        "a slave does not reconnect after its connection ends",
        "SlaveCatchesUp",
        "replication.client:SlaveClient.run",
        _connects_once,
    ),
    _mutant(
        "DeletedTopicComesBack",
        "recovery dispatches the records of a deleted topic again",
        "QueueOffsetsDense",
        "store.files.deleted_topics:DeletedTopics.has",
        lambda *_: False,
    ),
    _mutant(
        "YoungMessagesDeleted",
        "segments of the log are deleted at any age",
        "NoAckedLost",
        "store.expiry:expired_before",
        _all_but_the_last_segment,
    ),
    _mutant(
        "TornRecordKept",
        "recovery keeps a torn record and continues after it",
        "RecoveredPrefix",
        "store.recovery:find_end",
        _keep_the_torn_record,
    ),
    *(_of_brokers(each) for each in (*dledger.MUTANTS, *dledger.SELDOM) if each.name in _OF_BROKERS),
)
