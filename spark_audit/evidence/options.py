"""Options about clocks, brokers and groups, and how thorough an audit is."""

from dataclasses import dataclass
from typing import Final

SKEW_US: Final = 100_000

ANY: Final = "*"
"""Stands for every group or topic in Options.subscriptions."""

LADDER_MS: Final = tuple(
    seconds * 1000 for seconds in (1, 5, 10, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200)
)
"""RocketMQ's default delay levels."""


@dataclass(frozen=True, slots=True)
class Options:
    skew_us: int = SKEW_US
    """Maximum difference of two nodes' clocks: a cause this far outside an interval still counts."""
    is_skew_given: bool = False
    """If false, the skew seen in the log (skew_seen) is used where it is larger."""
    flush: str | None = None
    """SYNC_FLUSH | ASYNC_FLUSH: the mode of brokers whose log does not state it."""
    exact: bool | None = None
    """Check every message exactly, even if fingerprints agree.

    None: only in small logs, where that costs less.
    """
    rebalance_us: int = 20_000_000
    """Maximum time a group needs to agree on owners after a member joins or leaves.

    RocketMQ's clients rebalance every 20 s.
    """
    broadcast: tuple[str, ...] = ()
    """Broadcast groups, in which every member receives every message; the log does not state this."""
    orderly: tuple[str, ...] = ()
    """Groups that consume in order, in addition to those that the log reports."""
    subscriptions: tuple[tuple[str, str, str], ...] = ()
    """Group, topic and tag expression of subscriptions that the log does not state.

    Group and topic may be ANY.
    """
    lock_us: int = 60_000_000
    """How long a broker keeps a lock that is not renewed."""
    delays_ms: tuple[int, ...] = LADDER_MS
    """Delay of each level of delayed messages, from level 1."""
    id_prefix: int = 0
    """Number of id characters that identify a message's bucket (fingerprint.py).

    With 0, the bucket is derived from a hash of the id.
    """
    sample: int = 0
    """One in so many clean buckets is read for the distribution of latencies; 0 means none."""
