"""The clock skew between nodes."""

from dataclasses import replace
from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column
from mqproof.spark_audit.evidence.tables import Evidence

_SKEW_MAX_US: Final = 60_000_000
"""Larger differences are not clock skew but missing rows."""


def with_skew(evidence: Evidence) -> tuple[Evidence, int]:
    """Allow for the clock skew seen in the examined messages, unless the user states the skew.

    Returns the evidence and the skew seen, in microseconds.
    """
    row = evidence.messages.agg(skew_seen()).first()
    assert row is not None, "an aggregate without keys has one row"
    options, seen_us = evidence.options, row[0]
    allowed_us = options.skew_us
    if not options.is_skew_given:
        allowed_us = max(allowed_us, min(seen_us, _SKEW_MAX_US))
    return replace(evidence, options=replace(options, skew_us=allowed_us)), seen_us


def skew_seen() -> Column:
    """Return the largest time, in microseconds, by which an effect precedes its cause in Evidence.messages.

    The clocks differ by at least that.
    """
    steps = (
        ("send_ts", "appended_ts"), ("appended_ts", "acked_ts"), ("send_ts", "acked_ts"),
        ("send_ts", "delivered_ts"), ("appended_ts", "delivered_ts"),
    )  # fmt: skip
    backwards = f.greatest(*[f.col(cause) - f.col(effect) for cause, effect in steps])
    return f.greatest(f.coalesce(f.max(backwards), f.lit(0)), f.lit(0))
