"""One module per invariant: the evidence it examines, its findings, and when it cannot conclude anything.

Start with `check.py` for the structure of a check. `CHECKS` lists all checks by catalogue id.
"""

from typing import Final

from mqproof.spark_audit.checks import (
    async_acked_survives_process_crash,
    broadcast_to_all,
    checked_while_open,
    committed_once,
    committed_stable,
    dead_broker_forgotten,
    duplicates_explained,
    election_safety,
    ends_once,
    filter_sound,
    index_rebuildable,
    leader_append_only,
    leader_completeness,
    live_broker_kept,
    log_matching,
    never_overlaps,
    no_acked_lost,
    no_phantom,
    not_early,
    offset_monotone,
    one_owner,
    queue_offsets_dense,
    queue_order,
    queue_points_into_log,
    recall_holds,
    recovered_prefix,
    retry_avoids_last_broker,
    retry_then_dead_letter,
    slave_is_prefix,
    status_honest,
    sync_acked_durable,
    sync_acked_on_slave,
    tables_agree,
    transaction_atomic,
    vote_once_per_term,
)
from mqproof.spark_audit.checks.check import Check

CHECKS: Final[dict[str, Check]] = {
    check.invariant: check
    for check in (
        tables_agree.CHECK,
        live_broker_kept.CHECK,
        dead_broker_forgotten.CHECK,
        retry_avoids_last_broker.CHECK,
        sync_acked_durable.CHECK,
        async_acked_survives_process_crash.CHECK,
        queue_points_into_log.CHECK,
        queue_offsets_dense.CHECK,
        recovered_prefix.CHECK,
        index_rebuildable.CHECK,
        sync_acked_on_slave.CHECK,
        slave_is_prefix.CHECK,
        status_honest.CHECK,
        election_safety.CHECK,
        leader_append_only.CHECK,
        log_matching.CHECK,
        leader_completeness.CHECK,
        committed_stable.CHECK,
        vote_once_per_term.CHECK,
        no_acked_lost.CHECK,
        no_phantom.CHECK,
        duplicates_explained.CHECK,
        queue_order.CHECK,
        offset_monotone.CHECK,
        one_owner.CHECK,
        retry_then_dead_letter.CHECK,
        not_early.CHECK,
        transaction_atomic.CHECK,
        filter_sound.CHECK,
        broadcast_to_all.CHECK,
        never_overlaps.CHECK,
        committed_once.CHECK,
        ends_once.CHECK,
        checked_while_open.CHECK,
        recall_holds.CHECK,
    )
}
"""Maps a catalogue id to its check, in the order of reports."""

EVENT_CHECKS: Final = {name: check for name, check in CHECKS.items() if check.of_events}
STORE_CHECKS: Final = {name: check for name, check in CHECKS.items() if check.of_stores}

__all__ = ["CHECKS", "EVENT_CHECKS", "STORE_CHECKS", "Check"]
