"""Workloads on our broker in simulated time: a seed gives the same history, and it violates no rule."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.conformance.adapters.workload.clusters import run
from mqproof.conformance.bench import broker as broker_bench
from mqproof.conformance.history.judge import judge
from mqproof.conformance.history.lines import Consume, Fault, Line, Send, Type, encode
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.record import Outcome
from mqproof.conformance.history.workload import Workload
from mqproof.conformance.mutants import consumers, workload
from mqproof.conformance.mutants.flush import MUTANTS
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.registry import mutant_judge
from mqproof.report.model import Verdict

SMALL = Workload(messages=30, faults=3, seed=2)


@pytest.fixture(scope="module")
def small() -> tuple[Line, ...]:
    """Return the history of the small workload on our broker."""
    return tuple(run("impl", SMALL))


def violated(history: Sequence[Line]) -> set[str]:
    return {judged.rule.id for judged in judge(history) if judged.finding.verdict is Verdict.VIOLATED}


def test_our_broker_breaks_no_rule_under_any_fault(small: Sequence[Line]) -> None:
    assert violated(small) == set()
    assert violated(run("impl", Workload(messages=30, faults=3, seed=1))) == set()


def test_the_same_seed_gives_the_same_history(small: Sequence[Line]) -> None:
    assert [*map(encode, run("impl", SMALL))] == [*map(encode, small)]


def test_a_workload_performs_every_operation_that_the_rules_judge(small: Sequence[Line]) -> None:
    history = small
    sorted_out = record(history)
    assert sorted_out.gap_count == 0
    assert [line for line in history if isinstance(line, Fault)]
    sends = [line for line in history if isinstance(line, Send)]
    assert max(len(line.value.messages) for line in sends) > 1
    assert any(message.deliver_at for line in sends for message in line.value.messages)
    ends = Counter(line.type for line in history if isinstance(line, Consume))
    assert ends[Type.FAIL]
    assert any(message.times for read in sorted_out.reads for message in read.messages)
    members = {step.value.client for step in sorted_out.assigns if step.value.group == "w-orderly"}
    left = {step.value.client for step in sorted_out.assigns if step.value.left}
    assert (members, left) == ({"orderly0", "orderly1", "orderly2"}, {"orderly2", "retry2"})
    assert all(step.span.outcome is Outcome.OK for step in sorted_out.drains)
    decided = {judged.rule.id for judged in judge(sorted_out) if judged.finding.verdict is Verdict.HELD}
    assert len(decided) >= 30


# Defects of broker and client, detected from the observations of clients.

MUCH = Workload(messages=30, faults=4, seed=0)
LITTLE = Workload(messages=12, faults=1, seed=0)
DEEP_C02 = pytest.mark.deep("1 to 2 CPU seconds; the rule C02 detects another defect in every run")


@pytest.mark.parametrize(
    ("mutant", "rule", "work"),
    [
        ("ack-before-flush", "C02", replace(MUCH, seed=1)),
        pytest.param("last-record-forgotten", "C02", replace(MUCH, seed=2), marks=DEEP_C02),
        ("queue-of-the-neighbour", "A08", LITTLE),
        pytest.param("not-dispatched-again", "C02", replace(MUCH, seed=1), marks=DEEP_C02),
        ("pull-skips", "A09", LITTLE),
        ("taken-over-too-low", "C06", LITTLE),
        ("taken-over-too-high", "C08", LITTLE),
    ],
)
def test_a_defect_of_broker_or_client_is_detected(mutant: str, rule: str, work: Workload) -> None:
    """Detected within a few histories. The seed determines the faults; the first seed is one that works."""
    with injected({**MUTANTS, **consumers.MUTANTS}[mutant]):
        seeds = range(work.seed, work.seed + 20)
        histories = (run("impl", replace(work, seed=seed)) for seed in seeds)
        assert any(rule in violated(history) for history in histories)


SLOW = {"empty-retry-share-kept", "finished-without-a-copy", "failed-batch-to-the-end"}
SEEDS = {"never-given-up": 1, "cached-messages-dropped": 1}
"""The first seed that detects a mutant, if it is not 0."""
DEEP = pytest.mark.deep("1 to 15 CPU seconds; test_rules.py tests the rules that detect it")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[DEEP] if name in SLOW else []) for name in workload.MUTANTS],
)
def test_the_named_invariant_detects_a_defect_visible_to_clients(name: str) -> None:
    (result,) = mutant_judge.run([name], seed=SEEDS.get(name, 0), examples_max=20)
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed in {result.counts}"
    assert result.id == workload.MUTANTS[name].breaks


def test_a_workload_runs_on_any_cluster(tmp_path: Path) -> None:
    """Uses real sockets and real time, so only rules that do not depend on time are checked."""
    with broker_bench.ours(tmp_path, broker_bench.ASYNC) as broker:
        assert isinstance(broker, broker_bench.OurBroker)
        target = f"remoting://{broker.name_server}"
        history = run(target, Workload(messages=5, producers=2, faults=1, settle_s=1.0))
    assert [line.value.kind for line in history if isinstance(line, Fault)][1:] == ["heal"]
    found = {judged.rule.id: judged.finding.verdict for judged in judge(history)}
    assert {found[rule] for rule in ("A04", "A08", "C01", "C16", "C17")} == {Verdict.HELD}
    assert Verdict.VIOLATED not in {found[rule] for rule in ("A01", "A03", "A06", "A12", "C02", "C14")}


@pytest.mark.parametrize("name", ["nowhere", "remoting://nowhere"])
def test_an_unknown_target_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT"):
        run(name, SMALL)
