"""Tests the settings of a member: which are refused, and what the message names."""

import pytest

from mqproof.impl.dledger.config import GroupConfig, Membership, Peer, parse_peers, purpose_of
from mqproof.impl.runtime.network import Address

PEERS = parse_peers("n0-h:1;n1-h:2;n2-i:1")


def test_peers_are_read_from_text() -> None:
    assert (
        Peer("n0", Address("h", 1)),
        Peer("n1", Address("h", 2)),
        Peer("n2", Address("i", 1)),
    ) == PEERS
    assert parse_peers(" n0-h:1 ; ;") == (Peer("n0", Address("h", 1)),)
    assert str(PEERS[2]) == "n2-i:1"
    assert parse_peers("n999999999-h:1")[0].id == "n999999999"


@pytest.mark.parametrize("text", ["n0", "n0-h", "x0-h:1", "n-h:1", "n0x-h:1", "n1234567890-h:1", "n٣-h:1"])
def test_text_that_names_no_peer_is_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"^n0-HOST:PORT, one for each member, separated by ';',$"):
        parse_peers(text)


def _membership(
    self_id: str = "n0", peers: tuple[Peer, ...] = PEERS, preferred: tuple[str, ...] = ()
) -> Membership:
    return Membership(True, "g", peers, self_id, preferred)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"self_id": "n9"}, "dLegerSelfId is 'n9', dLegerPeers names n0, n1, n2"),
        ({"peers": ()}, "dLegerSelfId is 'n0', dLegerPeers names no member"),
        ({"peers": (*PEERS, Peer("n1", Address("j", 7)))}, "dLegerPeers names one of n0, n1, n2, n1 twice"),
        ({"peers": (*PEERS, Peer("n3", Address("h", 2)))}, "dLegerPeers has two members at one address"),
        ({"preferred": ("n1", "n9")}, "preferredLeaderIds names 'n9', dLegerPeers n0, n1, n2"),
    ],
)
def test_contradicting_settings_of_a_broker_are_refused(fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        _membership(**fields)  # type: ignore[arg-type]


def test_a_broker_that_is_no_member_may_have_any_settings() -> None:
    assert Membership(self_id="n9").addresses == {}


@pytest.mark.parametrize(("self_id", "slave_id"), [("n0", 1), ("n1", 2), ("n2", 3)])
def test_a_member_that_does_not_lead_is_a_slave_of_its_own_id(self_id: str, slave_id: int) -> None:
    assert _membership(self_id, preferred=("n2", "n0")).slave_id == slave_id
    assert _membership(self_id).addresses["n2"] == Address("i", 1)


@pytest.mark.parametrize(
    ("self_id", "members", "preferred", "complaint"),
    [
        ("n9", ("n0", "n1"), (), "self_id is 'n9', one of n0, n1 expected"),
        ("n0", ("n0", "n1", "n1"), (), "members are n0, n1, n1: one is named twice"),
        ("n0", ("n0", "n1"), ("n1", "n9"), "preferred_leaders names 'n9', which is not a member"),
    ],
)
def test_contradicting_settings_of_a_member_are_refused(
    self_id: str, members: tuple[str, ...], preferred: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        GroupConfig("g", self_id, members, preferred)


def test_the_peers_of_a_member_are_the_others_and_its_quorum_counts_it() -> None:
    config = GroupConfig("g", "n1", ("n0", "n1", "n2"), ("n1",))
    assert (config.peers, config.quorum) == (("n0", "n2"), 2)


def test_the_times_and_limits_are_those_of_released_members() -> None:
    config = GroupConfig("g", "n0", ("n0",))
    assert (config.heartbeat_ms, config.give_up_ms) == (2000, 6000)
    assert (config.vote_wait_ms, config.take_leadership_wait_ms) == ((300, 1000), (30, 100))
    assert (config.better_ledger_wait_ms, config.push_timeout_ms, config.catch_up_ms) == (1000, 1000, 1000)
    assert (config.transfer_lag_max, config.pending_max) == (1000, 10_000)
    assert config.batch_bytes_max == 4 << 20


def test_members_of_a_group_prove_that_they_are_of_this_group() -> None:
    assert purpose_of("g") == "group g"
