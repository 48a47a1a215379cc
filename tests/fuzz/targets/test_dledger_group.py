"""Tests a DLedger group under faults: the invariants hold, seeds can be replayed, and the judge can fail."""

from collections import Counter
from collections.abc import Callable

import pytest

from mqproof.fuzz import simulation, targets
from mqproof.fuzz.raft.event_log import record
from mqproof.fuzz.raft.judge import (
    History,
    Judged,
    Seen,
    leader_eventually,
    logs_converge,
    no_acked_lost,
    reads_current,
)
from mqproof.fuzz.raft.program import (
    Run,
    fault,
    late_vote_program,
    partial_cut_program,
    random_program,
    rejoining_program,
    toppling_program,
)
from mqproof.fuzz.raft.simulated_group import Group
from mqproof.fuzz.target import Finding
from mqproof.impl.dledger.state import Role
from mqproof.spec import catalogue
from tests.fuzz.seeds import UNBEGUN, hold, parts

TESTING_ALL = (17, 24, 29)
"""Few seeds that together test every invariant."""


def _play(seed: int) -> Counter[str]:
    checked: Counter[str] = Counter()
    Run(random_program(seed), checked).run()
    return checked


@UNBEGUN
@pytest.mark.parametrize("seeds", parts(), ids=str)
def test_the_invariants_hold_whatever_faults_a_group_has(seeds: range) -> None:
    checked = hold(_play, seeds)
    assert set(checked) <= set(targets.load("dledger-group").invariants)


def test_the_seeds_test_every_invariant() -> None:
    checked = hold(_play, TESTING_ALL)
    assert {name for name, times in checked.items() if times} == set(targets.load("dledger-group").invariants)


def test_killing_each_new_leader_breaks_no_invariant() -> None:
    for seed in range(40):
        Run(toppling_program(seed), Counter()).run()


@pytest.mark.parametrize(
    "program", [rejoining_program, late_vote_program, partial_cut_program], ids=lambda each: each.__name__
)
def test_a_directed_program_breaks_no_invariant(program: Callable[[int], bytes]) -> None:
    for seed in range(20):
        Run(program(seed), Counter()).run()


@pytest.mark.parametrize("name", ["DurableNotLowered", "EarlierRoundCounted"])
def test_a_rare_defect_is_found_within_20_seeds(name: str) -> None:
    assert simulation.recorded()[name] < 20


def test_a_seed_replays_bit_for_bit() -> None:
    first, again = (record(random_program(5)) for _ in range(2))
    assert first == again
    assert len(first) > 100


def test_another_seed_gives_another_run() -> None:
    assert record(random_program(5)[:6]) != record(random_program(6)[:6])


def test_members_delete_entries_that_all_have_and_an_absent_member_still_gets_the_rest() -> None:
    busy = bytes((1, 0, 0, 0, 96, 0))
    away = fault("kill", 0, 60, 40)
    run = Run(busy + away + b"".join(fault("expire", selector, 20, 79) for selector in range(3)), Counter())
    run.run()
    members = [node.member for node in run.group.nodes.values()]
    assert all(member is not None and member.ledger.begin_index > 0 for member in members)


def test_any_bytes_are_a_program_and_no_bytes_are_a_group_without_faults() -> None:
    run = Run(b"", Counter())
    run.run()
    assert run.group.history.acked
    assert len(run.group.history.winners) == 1


@pytest.mark.parametrize("name", ["isolate", "deafen", "mute"])
def test_a_disconnected_leader_stops_leading_and_the_others_elect_another(name: str) -> None:
    run = Run(bytes(6) + fault(name, 128, 16, 79), Counter())
    run.run()
    assert len(run.group.history.winners) > 1


def test_a_group_of_five_tolerates_two_failures() -> None:
    group = Group(seed=3, members=5)
    for name in group.nodes:
        group.start(name)
    group.run(20_000)
    for name in ("n0", "n1"):
        group.lose_power(name)
    group.run(60_000)
    roles = [node.member.core.state.role for node in group.nodes.values() if node.member]
    assert roles.count(Role.LEADER) == 1


def test_a_member_that_lost_only_its_link_to_the_leader_is_not_elected_and_then_returns() -> None:
    for members in (3, 5):
        group = Group(seed=4, members=members)
        for name in group.nodes:
            group.start(name)
        group.run(20_000)
        (leader,) = (name for name, role in _roles(group).items() if role is Role.LEADER)
        follower = next(name for name in group.nodes if name != leader)
        group.cut = {(leader, follower), (follower, leader)}
        group.run(60_000)
        assert len(group.history.winners) == 1, "the others wait for the leader"
        assert _roles(group)[follower] is Role.CANDIDATE
        group.cut.clear()
        group.run(70_000)
        assert sorted(_roles(group).values()) == [*[Role.FOLLOWER] * (members - 1), Role.LEADER]


def _roles(group: Group) -> dict[str, Role]:
    return {name: node.member.core.state.role for name, node in group.nodes.items() if node.member}


def test_the_leadership_is_transferred_to_the_preferred_member() -> None:
    group = Group(seed=1, preferred=("n2",))
    for name in group.nodes:
        group.start(name)
    group.run(60_000)
    member = group.nodes["n2"].member
    assert member is not None
    assert member.core.state.role is Role.LEADER


# The judge itself: invariants of the end, which no single change of a member can violate.


def test_a_group_without_a_leader_at_the_end_is_a_finding() -> None:
    with pytest.raises(Finding, match="no member leads") as caught:
        leader_eventually(History(("n0",), Counter()), None, 60)
    assert caught.value.invariant == "LeaderEventually"


def test_logs_that_differ_at_the_end_are_a_finding() -> None:
    with pytest.raises(Finding) as caught:
        logs_converge(History(("n0", "n1"), Counter()), {"n0": (3, 3), "n1": (3, 2)}, 60)
    assert caught.value.invariant == "LogsConverge"


def test_a_lost_acknowledged_entry_is_a_finding() -> None:
    group = Group(seed=1)
    for name in group.nodes:
        group.start(name)
    while not group.history.acked:
        group.send(b"x")
        group.run(group.now_ms + 1000)
    no_acked_lost(group.history, "n0")
    group.history.logs["n0"].clear()
    with pytest.raises(Finding) as caught:
        no_acked_lost(group.history, "n0")
    assert caught.value.invariant == "NoAckedLost"


def test_a_leader_that_may_serve_after_a_later_one_has_committed_is_a_finding() -> None:
    history = History(("n0", "n1"), Counter())
    reads_current(history, "n0", 1)
    history.committed.append(Judged(Seen(2, 2, b""), 2))
    with pytest.raises(Finding, match="n0 may serve in term 1; a leader of 2 committed") as caught:
        reads_current(history, "n0", 1)
    assert caught.value.invariant == "ReadsCurrent"


def test_the_invariants_are_those_of_the_catalogue() -> None:
    known = {invariant.name for invariant in catalogue.catalogue().values()}
    assert set(targets.load("dledger-group").invariants) <= known
