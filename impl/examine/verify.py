"""Checks whether a store directory is intact, and reports one line for each damage.

The log is walked once, from its start. Each record is compared with the entry in its queue and with the
entries of its keys in the index. Entries without a record are damage too.
"""

from mqproof.impl.examine.contents import offsets, topics
from mqproof.impl.examine.directory import StoreDirectory
from mqproof.impl.examine.index_check import IndexCheck
from mqproof.impl.examine.ledger_walk import LedgerWalk
from mqproof.impl.examine.log_walk import LogWalk
from mqproof.impl.examine.queue_check import QueuesCheck
from mqproof.impl.examine.verdict import Verdict
from mqproof.impl.store.dispatch import takes_queue_offset


def verify(store: StoreDirectory) -> Verdict:
    """Check everything in the store. Raises OSError where the disk cannot be read."""
    verdict = Verdict(damages=list(store.problems))
    log = LedgerWalk(store, store.ledger, verdict) if store.ledger else LogWalk(store, verdict)
    queues = QueuesCheck(store, verdict, log.is_damaged)
    index = IndexCheck(store, verdict, log.is_damaged)
    for stored in log.records():
        verdict.records += 1
        if takes_queue_offset(stored.message.sys_flag):
            queues.saw(stored)
        index.saw(stored)
    queues.finish()
    index.finish()
    log.finish(queues.commit_offset_max)
    _check_checkpoint(store, verdict, log, queues.deleted_count)
    _check_configuration(store, verdict)
    if not store.is_clean:
        verdict.notes.append("abort is there: the last exit was not clean, the next start recovers")
    return verdict


def _check_checkpoint(
    store: StoreDirectory, verdict: Verdict, log: LogWalk | LedgerWalk, deleted_count: int
) -> None:
    """Check the checkpoint: its values may be too low but never too high, except for topics deleted since."""
    known = store.checkpoint
    if known is None:
        if store.is_clean and verdict.records:
            verdict.damages.append("checkpoint: missing after a clean exit")
        return
    for name, time_ms in (
        ("log", known.log_timestamp_ms),
        ("queue", known.queues_timestamp_ms),
        ("index", known.index_timestamp_ms),
    ):
        if time_ms > log.store_timestamp_ms:
            verdict.damages.append(
                f"checkpoint: the {name} time {time_ms} is later than any record's, {log.store_timestamp_ms}"
            )
    count = known.queue_count
    if count is not None and count.entries < 1 << 62:
        found = sum(queue.count_between(count.begin, count.position) for queue in store.queues.values())
        if found + deleted_count < count.entries:
            verdict.damages.append(
                f"checkpoint: {count.entries} queue entries up to commit offset {count.position},"
                f" {found} are there"
            )
    if known.index is not None and known.index.position > log.end:
        verdict.damages.append(
            f"checkpoint: the index goes to commit offset {known.index.position}, the log to {log.end}"
        )


def _check_configuration(store: StoreDirectory, verdict: Verdict) -> None:
    known = {topic.name: topic for topic in topics(store, verdict.damages)}
    with_entries = {topic for (topic, _), queue in store.queues.items() if queue.end > queue.begin}
    for topic in sorted(with_entries - known.keys()) if known else ():
        verdict.notes.append(f"config/topics.json: topic {topic} has queues but no entry")
    for progress in offsets(store, verdict.damages):
        queue = store.queues.get((progress.topic, progress.queue_id))
        end = queue.end if queue else 0
        if progress.offset > end:
            verdict.damages.append(
                f"config/consumerOffset.json: group {progress.group} is at {progress.offset} of queue"
                f" {progress.queue_id} of {progress.topic}, which ends at {end}"
            )
