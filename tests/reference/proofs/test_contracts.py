"""Contracts: CrossHair confirms cheap ones and finds every injected bug; a timeout is not a confirmation."""

import pytest

from mqproof.reference.proofs.contracts import CONTRACTS, Contract
from mqproof.reference.proofs.crosshair_check import Finding, analyse, injected, judge_bug, judge_contract
from mqproof.reference.proofs.mutants.contracts import BUGS, Bug
from mqproof.reference.rules import allocation, delay, offsets
from mqproof.report.model import Verdict

CHEAP = [contract for contract in CONTRACTS if contract.module in (delay, offsets)]


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.holds.__name__)
def test_a_contract_holds_in_all_cases_of_its_bound(contract: Contract) -> None:
    assert all(contract.holds(*case) for case in contract.cases())


@pytest.mark.parametrize("contract", CHEAP, ids=lambda contract: contract.holds.__name__)
def test_crosshair_confirms_the_contract_on_every_path(contract: Contract) -> None:
    assert analyse(contract).finding is Finding.CONFIRMED


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_crosshair_finds_the_injected_bug(bug: Bug) -> None:
    result, _ = judge_bug(bug)
    assert result.verdict is Verdict.HELD, result.detail


def test_each_contract_has_a_bug_to_inject() -> None:
    assert [bug.contract for bug in BUGS] == list(CONTRACTS)


def test_an_injected_bug_is_removed_at_the_end() -> None:
    sound = allocation.averagely
    with injected(BUGS[0]):
        assert allocation.averagely is not sound
    assert allocation.averagely is sound


def test_a_contract_that_crosshair_did_not_confirm_is_reported_as_nothing_found() -> None:
    (slow,) = (c for c in CONTRACTS if c.function == "consistent_hash")
    result, row = judge_contract(slow, seconds_max=0.05)
    assert row[1] == "nothing found"
    assert row[2].startswith("108 cases: up to 16 queues")
    assert result.counts == {"cases": 108}


def test_the_witness_of_a_violated_contract_has_its_arguments() -> None:
    with injected(next(bug for bug in BUGS if bug.name == "one-more-retry")):
        (contract,) = (c for c in CONTRACTS if c.holds.__name__ == "retries_climb_the_ladder_and_end")
        result, _ = judge_contract(contract)
    assert result.verdict is Verdict.VIOLATED
    assert "retries_climb_the_ladder_and_end(16)" in result.witnesses[0].text
