"""The configuration of a member of a group. The default times are DLedger's."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from mqproof.impl.dledger.rules import quorum
from mqproof.impl.runtime.network import Address

_ID: Final = re.compile(r"n([0-9]{1,9})", re.ASCII)


def purpose_of(group: str) -> str:
    """Return what members of a group prove to each other: that they are of this group."""
    return f"group {group}"


class Peer(NamedTuple):
    """A member, and the address at which the others reach it."""

    id: str
    address: Address

    def __str__(self) -> str:
        return f"{self.id}-{self.address}"

    @classmethod
    def parse(cls, text: str) -> "Peer":
        """Parse `n0-HOST:PORT`. Raises ValueError when the text has another form."""
        name, _, address = text.strip().partition("-")
        if not _ID.fullmatch(name):
            raise ValueError(f"the member {name!r} does not have the form n and a number")
        return cls(name, Address.parse(address))


def parse_peers(text: str) -> tuple[Peer, ...]:
    """Parse `n0-HOST:PORT;n1-HOST:PORT`. Raises ValueError, with the expected form, for any other text."""
    try:
        return tuple(Peer.parse(part) for part in text.split(";") if part.strip())
    except ValueError:
        raise ValueError("n0-HOST:PORT, one for each member, separated by ';',") from None


@dataclass(frozen=True, slots=True)
class Membership:
    """A broker's place in a group.

    Raises ValueError, naming the key, when the settings contradict each other.
    """

    is_member: bool = False
    """The property enableDLegerCommitLog: whether the broker is a member of a group."""
    group: str = ""
    """The property dLegerGroup: the group's name, the same at all members. Empty is the broker's name."""
    peers: tuple[Peer, ...] = ()
    """The property dLegerPeers: all members, this one included, as `n0-HOST:PORT;n1-HOST:PORT`."""
    self_id: str = ""
    """The property dLegerSelfId: the id of this member in the list of members."""
    preferred_leaders: tuple[str, ...] = ()
    """The property preferredLeaderIds: a leader transfers to one of them that is alive and close."""

    def __post_init__(self) -> None:
        if not self.is_member:
            return
        ids = [peer.id for peer in self.peers]
        known = ", ".join(ids) or "no member"
        if self.self_id not in ids:
            raise ValueError(f"dLegerSelfId is {self.self_id!r}, dLegerPeers names {known}")
        if len(set(ids)) < len(ids):
            raise ValueError(f"dLegerPeers names one of {known} twice")
        if len({peer.address for peer in self.peers}) < len(ids):
            raise ValueError("dLegerPeers has two members at one address")
        if strange := [one for one in self.preferred_leaders if one not in ids]:
            raise ValueError(f"preferredLeaderIds names {strange[0]!r}, dLegerPeers {known}")

    @property
    def slave_id(self) -> int:
        """The broker id while another member leads."""
        found = _ID.fullmatch(self.self_id)
        assert found is not None, f"{self.self_id!r} is not the id of a member"
        return int(found[1]) + 1

    @property
    def addresses(self) -> dict[str, Address]:
        return {peer.id: peer.address for peer in self.peers}


@dataclass(frozen=True)
class GroupConfig:
    """The settings of one member. Raises ValueError, naming the field, when a value is invalid."""

    group: str
    """The setting dLegerGroup: the group's name."""
    self_id: str
    """The setting dLegerSelfId: this member's id."""
    members: tuple[str, ...]
    """The ids of dLegerPeers, including this member's."""
    preferred_leaders: tuple[str, ...] = ()
    """The setting preferredLeaderIds: the ids of preferred leaders, the most preferred first."""
    heartbeat_ms: float = 2000
    give_up_ms: float = 6000
    """The timeout for contact: a follower then gives up its leader, and a leader its leadership."""
    vote_wait_ms: tuple[float, float] = (300, 1000)
    take_leadership_wait_ms: tuple[float, float] = (30, 100)
    round_ms: tuple[float, float] = (2000, 3000)
    better_ledger_wait_ms: float = 1000
    push_timeout_ms: float = 1000
    """A push without a response is sent again after this time."""
    commit_idle_ms: float = 1000
    """A follower that receives no entries gets the committed index after this time."""
    catch_up_ms: float = 1000
    """How long a member that is to take over may need for the last entries."""
    transfer_ms: float = 3000
    """How long a leader waits for the answer to its transfer of the leadership. Then it steps down."""
    transfer_lag_max: int = 1000
    """The leadership is not transferred to a member that lags by more entries than this."""
    pending_max: int = 10_000
    """The maximum number of uncommitted entries. Above it, the leader accepts no more."""
    window: int = 1000
    """The maximum number of unacknowledged entries sent to one follower."""
    batch_bytes_max: int = 4 << 20
    batch_entries_max: int = 64

    def __post_init__(self) -> None:
        if self.self_id not in self.members:
            raise ValueError(f"self_id is {self.self_id!r}, one of {', '.join(self.members)} expected")
        if len(set(self.members)) < len(self.members):
            raise ValueError(f"members are {', '.join(self.members)}: one is named twice")
        if strange := [p for p in self.preferred_leaders if p not in self.members]:
            raise ValueError(f"preferred_leaders names {strange[0]!r}, which is not a member")

    @cached_property
    def peers(self) -> tuple[str, ...]:
        return tuple(member for member in self.members if member != self.self_id)

    @cached_property
    def quorum(self) -> int:
        return quorum(len(self.members))
