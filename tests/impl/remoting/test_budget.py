"""Tests the budgets: the total, and the shares of an address and a connection."""

from collections.abc import Callable

import pytest

from mqproof.impl.remoting.budget import (
    Budget,
    NameBudget,
    Percentages,
    Shares,
    host_of,
    server_budgets,
    shares_of,
)
from mqproof.impl.runtime.simulated_loop import run_simulated


class Peer:
    def __init__(self, host: str) -> None:
        self.remote = (host, 1)


def simulated(check: Callable[[], None]) -> None:
    async def main() -> None:
        check()

    run_simulated(main())


def test_each_of_the_three_limits_refuses(caplog: pytest.LogCaptureFixture) -> None:
    def check() -> None:
        budget = Budget("held pulls", Shares(total=6, address=4, connection=3))
        a1, a2, b, c = Peer("a"), Peer("a"), Peer("b"), Peer("c")
        budget.take(a1, 3)
        assert budget.refusal(a1) == "3 held pulls of this connection, at most 3 allowed"
        budget.take(a2)
        assert budget.refusal(a2) == "4 held pulls of address a, at most 4 allowed"
        assert budget.refusal(b, 2) is None
        budget.take(b, 2)
        assert budget.refusal(c) == "6 held pulls of all connections, at most 6 allowed"
        budget.take(a1, -3)
        assert budget.refusal(a2, 2) is None
        assert (budget.used, budget.refused) == (3, 3)

    simulated(check)
    assert len(caplog.messages) == 2  # one line for each address


def test_names_count_for_their_creator_until_they_are_deleted() -> None:
    def check() -> None:
        budget = NameBudget("topics", Shares(total=5, address=3, connection=2))
        first, second = Peer("a"), Peer("a")
        budget.created(first, ["T1", "T2", "T1"])
        assert "of this connection" in (budget.refusal(first) or "")
        budget.created(second, ["T2", "T3"])
        del first  # its connection ended, its names stay
        assert budget.refusal(second) == "3 topics of address a, at most 3 allowed"
        budget.deleted(["T1", "unknown"])
        assert budget.refusal(second) is None
        assert budget.used == 2

    simulated(check)


def test_a_connection_may_create_and_delete_names_again_and_again() -> None:
    def check() -> None:
        budget, peer = NameBudget("topics", Shares(total=5, address=3, connection=2)), Peer("a")
        for number in range(10):
            assert budget.refusal(peer, 2) is None, number
            budget.created(peer, ["T1", "T2"])
            assert "of this connection" in (budget.refusal(peer) or "")
            budget.deleted(["T1", "T2"])

    simulated(check)


def test_shares_are_percentages_and_small_totals_are_not_divided() -> None:
    assert shares_of(100_000, Percentages()) == Shares(100_000, 50_000, 10_000)
    assert shares_of(4000, Percentages()) == Shares(4000, 2000, 1000)
    assert shares_of(10, Percentages()) == Shares(10, 10, 10)
    assert shares_of(100_000, Percentages(100, 20)) == Shares(100_000, 100_000, 20_000)


def test_a_connection_can_always_send_one_whole_frame() -> None:
    budgets = server_budgets(100, 300 << 20, Percentages(1, 1))
    assert budgets.unanswered.limits.connection == 256 << 20
    assert budgets.incomplete.limits.connection == 256 << 20
    assert server_budgets(100, 16 << 20, Percentages(1, 1)).unanswered.limits.connection == 16 << 20


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:0db8:0001:0002::/64"),
        ("2001:db8:1:2::9", "2001:0db8:0001:0002::/64"),
        ("fe80::1%eth0", "fe80:0000:0000:0000::/64"),
        ("no:address", "no:address"),
    ],
)
def test_the_addresses_of_one_ipv6_network_share(host: str, counted: str) -> None:
    assert host_of(Peer(host)) == counted
