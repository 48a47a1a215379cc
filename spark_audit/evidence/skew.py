"""How far the clocks of nodes disagree."""

from dataclasses import replace
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f

from mqproof.spark_audit.evidence.tables import Evidence

_SKEW_MAX_US: Final = 60_000_000
"""What is seen beyond that is no clock, but rows that are missing."""


def with_skew(evidence: Evidence) -> tuple[Evidence, int]:
    """How far clocks disagree, by the messages that are looked at: allowed for, unless the user says how good
    they are."""
    row = evidence.messages.agg(skew_seen()).first()
    assert row is not None, "an aggregate without keys has one row"
    options, seen_us = evidence.options, row[0]
    allowed_us = options.skew_us
    if not options.is_skew_given:
        allowed_us = max(allowed_us, min(seen_us, _SKEW_MAX_US))
    return replace(evidence, options=replace(options, skew_us=allowed_us)), seen_us


def skew_seen() -> Column:
    """Of Evidence.messages: by how much, in microseconds, effects stand before their causes. Clocks disagree
    by that at least."""
    steps = (
        ("send_ts", "appended_ts"), ("appended_ts", "acked_ts"), ("send_ts", "acked_ts"),
        ("send_ts", "delivered_ts"), ("appended_ts", "delivered_ts"),
    )  # fmt: skip
    backwards = f.greatest(*[f.col(cause) - f.col(effect) for cause, effect in steps])
    return f.greatest(f.coalesce(f.max(backwards), f.lit(0)), f.lit(0))
