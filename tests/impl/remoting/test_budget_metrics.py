"""Tests the metrics of a budget: use, limit and refusals."""

import pytest

from mqproof.impl.remoting.budget import Budget, Shares
from mqproof.impl.remoting.budget_metrics import budget_families
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated


class Peer:
    remote = ("10.0.0.1", 1)


def test_a_refusal_is_counted_and_use_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    budget, peer = Budget("held pulls", Shares(2, 2, 2)), Peer()

    async def scenario() -> None:
        for _ in range(2):
            assert budget.refusal(peer) is None
            budget.take(peer)
        assert budget.refusal(peer) is not None

    run_simulated(scenario(), SimulatedLoop())
    found = {family.metric.name: family for family in budget_families([budget], {"node_id": "b"})}
    assert {name: family.values for name, family in found.items()} == {
        "mqproof_budget_used": {("held_pulls",): 2},
        "mqproof_budget_limit": {("held_pulls",): 2},
        "mqproof_refused_requests_total": {("held_pulls",): 1},
    }
    assert "at most 2 allowed" in caplog.text
