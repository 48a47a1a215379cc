"""The rules that keep messages safe, each by the one function that is all of it.

Whoever wants to see what a rule is good for replaces that function and watches which invariant breaks. The
functions are called by name through their module or class, so replacing the attribute is enough.
"""

from typing import Final

RULES: Final = {
    # an answer tells the truth
    "ack-waits-for-flush": "impl.store.message_store:MessageStore.settle",
    "flush-covers-what-was-there-before": "impl.store.flush:LogFlusher.begin_round",
    "failed-fsync-is-no-flush": "impl.store.flush:LogFlusher.round_failed",
    "seen-only-when-confirmed": "impl.store.message_store:MessageStore.confirm_offset",
    "read-elsewhere-is-not-beyond-the-end": "impl.store.message_store:MessageStore.taken_end",
    # a record is whole and in its place
    "body-checksum": "impl.store.record:body_is_whole",
    "torn-text": "impl.store.record:text_is_whole",
    "position-checked": "impl.store.record:stands_where_it_says",
    # recovery
    "start-before-the-doubtful": "impl.store.recovery:choose_start",
    "end-is-last-whole-record": "impl.store.recovery:find_end",
    "torn-tail-cut-and-zeroed": "impl.store.recovery:cut_log",
    "recovered-log-synced": "impl.store.recovery:sync_recovered_log",
    "flushed-is-what-was-synced": "impl.store.recovery:count_as_flushed",
    "queue-cut-to-log": "impl.store.recovery:cut_queue",
    "missing-entries-dispatched-again": "impl.store.recovery:dispatch_again",
    "lost-queue-files-noticed": "impl.store.recovery:queues_are_whole",
    "lost-queues-distrusted-until-flushed": "impl.store.queue_flush:CheckpointWriter.distrust_queues",
    "index-cut-to-log": "impl.store.index:Index.cut",
    "index-repaired": "impl.store.index_file:IndexFile.repair",
    "missing-keys-indexed-again": "impl.store.recovery:index_again",
    "offsets-continue": "impl.store.appender:Appender.next_queue_offset",
    # what the next recovery rests on
    "checkpoint-behind-the-durable": "impl.store.queue_flush:CheckpointWriter.checkpoint_now",
    "only-the-old-is-deleted": "impl.store.expiry:expired_before",
    "offsets-outlive-their-messages": "impl.store.recovery:is_expired",
    "store-time-never-back": "impl.store.commit_log:CommitLog.next_store_timestamp",
    "abort-file-while-running": "impl.store.layout:mark_running",
    "abort-file-removed-last": "impl.store.layout:mark_clean",
}
"""Rule to "module:object"."""
