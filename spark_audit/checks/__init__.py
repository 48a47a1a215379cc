"""One file per invariant: what it looks at, what it finds, and when it cannot conclude anything.

Begin at `check.py` for the shape of a check; `CHECKS` lists them all by catalogue id.
"""

from typing import Final

from spark_audit.checks import (
    duplicates_explained,
    index_rebuildable,
    no_acked_lost,
    no_phantom,
    offset_monotone,
    queue_offsets_dense,
    queue_order,
    queue_points_into_log,
    recovered_prefix,
    sync_acked_durable,
)
from spark_audit.checks.check import Check

CHECKS: Final[dict[str, Check]] = {
    check.invariant: check
    for check in (
        sync_acked_durable.CHECK,
        queue_points_into_log.CHECK,
        queue_offsets_dense.CHECK,
        recovered_prefix.CHECK,
        index_rebuildable.CHECK,
        no_acked_lost.CHECK,
        no_phantom.CHECK,
        duplicates_explained.CHECK,
        queue_order.CHECK,
        offset_monotone.CHECK,
    )
}
"""Catalogue id to its check, in the order of reports."""

EVENT_CHECKS: Final = {name: check for name, check in CHECKS.items() if check.of_events}
STORE_CHECKS: Final = {name: check for name, check in CHECKS.items() if check.of_stores}

__all__ = ["CHECKS", "EVENT_CHECKS", "STORE_CHECKS", "Check"]
