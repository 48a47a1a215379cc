"""The rules that protect messages, each implemented by exactly one function.

To see what a rule protects, replace its function and observe which invariant breaks. The functions are called
by name through their module or class, so replacing the attribute is enough.
"""

from typing import Final

RULES: Final = {
    # answers are true
    "ack-waits-for-flush": "mqproof.impl.store.message_store:MessageStore.settle",
    "flush-covers-what-was-there-before": "mqproof.impl.store.flush:LogFlusher.begin_round",
    "failed-fsync-is-no-flush": "mqproof.impl.store.flush:LogFlusher.round_failed",
    "seen-only-when-confirmed": "mqproof.impl.store.message_store:MessageStore.confirm_offset",
    "read-elsewhere-is-not-beyond-the-end": "mqproof.impl.store.message_store:MessageStore.taken_end",
    # a record is whole and at its position
    "body-checksum": "mqproof.impl.store.files.record:body_is_whole",
    "torn-text": "mqproof.impl.store.files.record:text_is_whole",
    "position-checked": "mqproof.impl.store.files.record:stands_where_it_says",
    # recovery
    "start-before-the-doubtful": "mqproof.impl.store.recovery:choose_start",
    "end-is-last-whole-record": "mqproof.impl.store.recovery:find_end",
    "torn-tail-cut-and-zeroed": "mqproof.impl.store.recovery:cut_log",
    "recovered-log-synced": "mqproof.impl.store.recovery:sync_recovered_log",
    "flushed-is-what-was-synced": "mqproof.impl.store.recovery:count_as_flushed",
    "queue-cut-to-log": "mqproof.impl.store.recovery:cut_queue",
    "missing-entries-dispatched-again": "mqproof.impl.store.recovery:dispatch_again",
    "lost-queue-files-noticed": "mqproof.impl.store.recovery:queues_are_whole",
    "lost-queues-distrusted-until-flushed": "mqproof.impl.store.queue_flush:CheckpointWriter.distrust_queues",
    "index-cut-to-log": "mqproof.impl.store.files.index:Index.cut",
    "index-repaired": "mqproof.impl.store.files.index_file:IndexFile.repair",
    "missing-keys-indexed-again": "mqproof.impl.store.recovery:index_again",
    "offsets-continue": "mqproof.impl.store.appender:Appender.next_queue_offset",
    # preconditions of the next recovery
    "checkpoint-behind-the-durable": "mqproof.impl.store.queue_flush:CheckpointWriter.checkpoint_now",
    "only-the-old-is-deleted": "mqproof.impl.store.expiry:expired_before",
    "offsets-outlive-their-messages": "mqproof.impl.store.recovery:is_expired",
    "store-time-never-back": "mqproof.impl.store.files.commit_log:CommitLog.next_store_timestamp",
    "abort-file-while-running": "mqproof.impl.store.files.layout:mark_running",
    "abort-file-removed-last": "mqproof.impl.store.files.layout:mark_clean",
}
"""Maps each rule to "module:object"."""
