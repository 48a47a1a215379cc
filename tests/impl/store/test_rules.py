"""Tests that each rule of the store is needed: without it, an invariant breaks and a test notices that.

Method: replace the function of the rule by a broken one, then run the test that must notice: random runs, or
the one test that was written for the rule.
"""

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from mqproof.impl.store.appender import Appender
from mqproof.impl.store.base import Store
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.dispatch import Appended
from mqproof.impl.store.files.checkpoint import Checkpoint
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue
from mqproof.impl.store.files.record import RecordError
from mqproof.impl.store.flush import FlushRound, LogFlusher
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.queue_flush import CheckpointWriter
from mqproof.impl.store.recovery import Parts
from mqproof.impl.store.results import PutStatus
from mqproof.impl.store.rules import RULES
from tests.impl.store import test_expiry, test_lost_queue_files, test_message_store, test_recovery
from tests.impl.store.files import test_index
from tests.impl.store.simulation import simulate

SEEDS = 400


def _lives(mode: FlushMode) -> Callable[[], None]:
    def run() -> None:
        for seed in range(SEEDS):
            wrong = simulate(seed, mode)
            assert not wrong, f"seed {seed}: {wrong}"

    return run


sync_lives = _lives(FlushMode.SYNC_FLUSH)
async_lives = _lives(FlushMode.ASYNC_FLUSH)


async def _acks_at_once(store: MessageStore, appended: Appended, wait: bool) -> PutStatus:
    return PutStatus.PUT_OK


class _CoversWhatComesLater:
    """A flush round that counts the data that exists when it ends."""

    def __init__(self, flusher: LogFlusher) -> None:
        self._log = flusher._log
        self.unsynced = self._log.take_unsynced()

    @property
    def end(self) -> int:
        return self._log.end

    @property
    def store_timestamp_ms(self) -> int:
        return self._log.store_timestamp_ms


def _counts_failure_as_success(flusher: LogFlusher, error: OSError) -> None:
    flusher.round_done(FlushRound(flusher._log.end, 0, flusher._log.take_unsynced()))


def _starts_at_the_last_segment(log: CommitLog, *_: Any) -> int:
    return log.segments.starts[-1] if log.segments.starts else 0


def _stops_at_the_first_filler(log: CommitLog, start: int) -> int:
    log.end = start
    for end, stored in log.scan(start):
        if stored is None:
            break
        log.end = end
    return log.end


def _forgets_to_sync(log: CommitLog, doubtful_from: int) -> None:
    log.take_unsynced()


def _counts_more_than_it_synced(log: CommitLog) -> None:
    log.flushed = log.segments.capacity_end


def _keeps_leading_entries(queue: ConsumeQueue, log: CommitLog) -> int:
    queue.end = queue.find_end(lambda unit: unit.size > 0)
    return 0


def _dispatches_nothing(parts: Parts, start: int) -> int:
    parts.dispatcher.position = parts.log.end
    return 0


def _starts_again_at_zero(appender: Appender, topic: str, queue_id: int) -> int:
    return appender._queue_offsets.get((topic, queue_id), 0)


def _vouches_for_what_is_only_written(writer: CheckpointWriter) -> Checkpoint:
    dispatcher = writer._queue_flusher._dispatcher
    return Checkpoint(writer._log.store_timestamp_ms, dispatcher.store_timestamp_ms)


BROKEN: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    "ack-waits-for-flush": (_acks_at_once, sync_lives),
    "flush-covers-what-was-there-before": (_CoversWhatComesLater, sync_lives),
    "failed-fsync-is-no-flush": (_counts_failure_as_success, sync_lives),
    "seen-only-when-confirmed": (lambda store: store._log.end, sync_lives),
    "read-elsewhere-is-not-beyond-the-end": (
        Store.taken_end,
        lambda: test_message_store.test_a_reader_ahead_of_the_durable_end_is_not_sent_back(
            test_message_store.SYNC
        ),
    ),
    "body-checksum": (lambda *_: True, test_recovery.test_a_record_with_a_damaged_body_is_cut),
    "torn-text": (
        lambda *_: True,
        test_recovery.test_every_torn_version_of_the_last_record_is_cut_to_the_record_before,
    ),
    "position-checked": (
        lambda *_: True,
        test_recovery.test_a_complete_record_at_the_wrong_position_is_refused,
    ),
    "start-before-the-doubtful": (_starts_at_the_last_segment, async_lives),
    "end-is-last-whole-record": (_stops_at_the_first_filler, sync_lives),
    "torn-tail-cut-and-zeroed": (
        lambda *_: 0,
        test_recovery.test_a_stale_record_after_a_torn_one_does_not_reappear,
    ),
    "recovered-log-synced": (_forgets_to_sync, async_lives),
    "flushed-is-what-was-synced": (_counts_more_than_it_synced, sync_lives),
    "queue-cut-to-log": (_keeps_leading_entries, async_lives),
    "missing-entries-dispatched-again": (_dispatches_nothing, sync_lives),
    "lost-queue-files-noticed": (
        lambda *_: True,
        test_lost_queue_files.test_a_queue_older_than_the_checkpoint_is_rebuilt_and_its_offsets_continue,
    ),
    "lost-queues-distrusted-until-flushed": (
        lambda _: None,
        lambda: test_lost_queue_files.test_rebuilt_entries_are_trusted_after_a_crash_no_more_than_before(
            True
        ),
    ),
    "index-cut-to-log": (lambda *_: None, test_index.test_an_index_that_is_ahead_of_the_log_is_cut),
    "index-repaired": (lambda _: None, async_lives),
    "missing-keys-indexed-again": (
        lambda parts, _: parts.index.cut(parts.log.begin, parts.log.end),
        lambda: test_index.test_after_a_clean_exit_missing_files_are_rebuilt_where_that_is_noticed("all"),
    ),
    "offsets-continue": (_starts_again_at_zero, sync_lives),
    "checkpoint-behind-the-durable": (
        _vouches_for_what_is_only_written,
        test_recovery.test_the_checkpoint_does_not_cover_unsynced_entries,
    ),
    "only-the-old-is-deleted": (
        lambda log, *_, **__: log.segments.starts[-1],
        test_expiry.test_segments_are_deleted_when_the_next_one_is_old_enough,
    ),
    "offsets-outlive-their-messages": (
        lambda *_: False,
        test_expiry.test_a_queue_without_remaining_messages_keeps_its_offsets,
    ),
    "store-time-never-back": (lambda _, now_ms: now_ms, async_lives),
    "abort-file-while-running": (lambda *_: None, test_recovery.test_a_killed_process_loses_nothing),
    "abort-file-removed-last": (
        lambda *_: None,
        test_recovery.test_after_a_clean_exit_nothing_is_cut_or_dispatched_again,
    ),
}


def _resolve(target: str) -> tuple[Any, str]:
    """Return the object that contains the rule's function, and the name of the function in it."""
    module, _, path = target.partition(":")
    *holders, name = path.split(".")
    holder: Any = importlib.import_module(module)
    for each in holders:
        holder = getattr(holder, each)
    return holder, name


def test_every_rule_has_a_broken_variant() -> None:
    assert set(BROKEN) == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_a_store_without_the_rule_is_caught(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, notice = BROKEN[rule]
    holder, name = _resolve(RULES[rule])
    assert callable(getattr(holder, name))
    if isinstance(broken, type):
        monkeypatch.setattr(holder, name, lambda flusher: broken(flusher))
    else:
        monkeypatch.setattr(holder, name, broken)
    with pytest.raises((AssertionError, RecordError)):  # the bytes read may not even be a record
        notice()
