"""What the user says of clocks, brokers and groups, and how closely an audit looks."""

from dataclasses import dataclass
from typing import Final

SKEW_US: Final = 100_000

LADDER_MS: Final = tuple(
    seconds * 1000 for seconds in (1, 5, 10, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200)
)
"""RocketMQ's own delay levels."""


@dataclass(frozen=True, slots=True)
class Options:
    skew_us: int = SKEW_US
    """How far the clocks of two nodes may disagree: a cause this much outside an interval still counts."""
    is_skew_given: bool = False
    """Else it is what the log shows (skew_seen), where that is more."""
    flush: str | None = None
    """SYNC_FLUSH | ASYNC_FLUSH: the mode of brokers whose log does not say."""
    exact: bool | None = None
    """Look at every message, also where fingerprints agree. None: of small logs, where that costs less."""
    rebalance_us: int = 20_000_000
    """How long a group may take to agree on owners after a member came or went; RocketMQ's clients look every
    20 s."""
    broadcast: tuple[str, ...] = ()
    """Groups of which every member gets every message; no log says so."""
    orderly: tuple[str, ...] = ()
    """Groups that consume in order, beside those whose log says so."""
    lock_us: int = 60_000_000
    """How long a broker keeps a lock that is not renewed."""
    delays_ms: tuple[int, ...] = LADDER_MS
    """What the levels of delayed messages mean, from level 1 on."""
    id_prefix: int = 0
    """So many characters of an id tell the bucket of its message; 0: its hash does (fingerprint.py)."""
    sample: int = 0
    """Of so many clean buckets look into one, for the distribution of latencies; 0 for none."""
