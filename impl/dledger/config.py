"""What can be set on a member of a group; times are DLedger's defaults."""

from dataclasses import dataclass
from functools import cached_property

from impl.dledger.rules import quorum


@dataclass(frozen=True)
class GroupConfig:
    """Raises ValueError, naming the field, when a value cannot work."""

    group: str
    """dLegerGroup"""
    self_id: str
    """dLegerSelfId"""
    members: tuple[str, ...]
    """The ids of dLegerPeers, this one's included."""
    preferred_leaders: tuple[str, ...] = ()
    """preferredLeaderIds, the most preferred first"""
    heartbeat_ms: float = 2000
    give_up_ms: float = 6000
    """Silence of that length ends a follower's trust in its leader, and a leader's in itself."""
    vote_wait_ms: tuple[float, float] = (300, 1000)
    take_leadership_wait_ms: tuple[float, float] = (30, 100)
    round_ms: tuple[float, float] = (2000, 3000)
    better_ledger_wait_ms: float = 1000
    push_timeout_ms: float = 1000
    """A push without an answer is sent again."""
    commit_idle_ms: float = 1000
    """A follower that is pushed nothing is told the committed index that late."""
    catch_up_ms: float = 1000
    """How long a member that is to take over may need for the last entries."""
    transfer_ms: float = 3000
    """How long a leader that hands over takes no entries."""
    transfer_lag_max: int = 1000
    """A member that is further behind is not handed the leadership."""
    pending_max: int = 10_000
    """Entries that are not committed yet; with more the leader takes none."""
    window: int = 1000
    """Entries on their way to one follower."""
    batch_bytes_max: int = 4 << 20
    batch_entries_max: int = 64

    def __post_init__(self) -> None:
        if self.self_id not in self.members:
            raise ValueError(f"self_id is {self.self_id!r}, one of {', '.join(self.members)} expected")
        if len(set(self.members)) < len(self.members):
            raise ValueError(f"members are {', '.join(self.members)}: one is named twice")
        if strange := [p for p in self.preferred_leaders if p not in self.members]:
            raise ValueError(f"preferred_leaders names {strange[0]!r}, which is no member")

    @cached_property
    def peers(self) -> tuple[str, ...]:
        return tuple(member for member in self.members if member != self.self_id)

    @cached_property
    def quorum(self) -> int:
        return quorum(len(self.members))
