"""One file per invariant: what it looks at, what it finds, and when it cannot conclude anything.

Begin at `check.py` for the shape of a check; `CHECKS` lists them all by catalogue id.
"""

from typing import Final

from spark_audit.checks import (
    duplicates_explained,
    no_acked_lost,
    no_phantom,
    offset_monotone,
    queue_order,
    sync_acked_durable,
)
from spark_audit.checks.check import Check

CHECKS: Final[dict[str, Check]] = {
    check.invariant: check
    for check in (
        sync_acked_durable.CHECK,
        no_acked_lost.CHECK,
        no_phantom.CHECK,
        duplicates_explained.CHECK,
        queue_order.CHECK,
        offset_monotone.CHECK,
    )
}
"""Catalogue id to its check, in the order of reports."""

__all__ = ["CHECKS", "Check"]
