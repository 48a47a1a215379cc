"""A suite holds on a correct target, lists the ways it did not test, and repeats itself for a seed."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from mqproof.conformance.adapters import simulated_loops
from mqproof.conformance.adapters.impl import ImplTarget
from mqproof.conformance.adapters.mutant_broker import MutantTarget
from mqproof.conformance.adapters.reference import ReferenceTarget
from mqproof.conformance.adapters.resolution import resolve
from mqproof.conformance.adapters.template import MyBroker
from mqproof.conformance.engine import suite_run, time_bounds
from mqproof.conformance.engine.fault_kinds import KINDS, FaultKind
from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_results import results
from mqproof.conformance.engine.suite_run import examine, run_suite
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.mutants.flush import MUTANTS
from mqproof.conformance.suites.flush.checkers import CHECKERS
from mqproof.conformance.suites.flush.suite import FLUSH
from mqproof.conformance.suites.flush.target import Capability, Outcome, Pulled, Sent, Setup, Target, WireOnly
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.reference.flush import SYNC_FLUSH
from mqproof.report.model import Verdict, overall


# With these seeds, so many examples test each invariant and meet each fault.
@pytest.mark.parametrize(
    ("factory", "examples", "seed"),
    [(ReferenceTarget, 80, 1), (ImplTarget, 16, 3)],
    ids=["reference", "impl"],
)
def test_every_invariant_holds(factory: Callable[[], Target], examples: int, seed: int) -> None:
    examination = examine(factory, examples, seed, suite=FLUSH)
    found = {result.id: result for result in results(examination, factory(), examples, seed)}
    untested = {} if factory is ImplTarget else {"FLUSH-7": Verdict.NOT_TESTED}
    assert {i: r.verdict for i, r in found.items() if r.verdict is not Verdict.HELD} == untested
    tested = [result for result in found.values() if result.verdict is Verdict.HELD]
    assert all(result.counts["examples"] == examples for result in tested)
    can = {KINDS[each] for each in factory().capabilities if each in KINDS}
    assert examination.faults.keys() - {FaultKind.FAIL_SYNCS} == can | {FaultKind.UNHEARD}


def test_examples_are_not_variants_of_one_another() -> None:
    """If they were, a run of a hundred examples would test only about twenty."""
    scripts: list[set[str]] = []
    examine(
        ReferenceTarget,
        60,
        0,
        on_example=lambda _, session: scripts.append(set(session.script())),
        suite=FLUSH,
    )
    alike = [len(one & next_) > 0.5 * len(one | next_) for one, next_ in pairwise(scripts)]
    assert sum(alike) < 6


class Killed(ReferenceTarget):
    """A target whose flush mode is known, and whose processes can be killed."""

    capabilities = frozenset({Capability.SYNC_FLUSH, Capability.KILL})


def test_a_held_result_lists_the_ways_that_were_not_tested() -> None:
    found = {result.id: result for result in run_suite(Killed, 20, seed=1, suite=FLUSH)}
    assert found["FLUSH-1"].verdict is Verdict.HELD
    assert found["FLUSH-1"].detail == "the target does not support os_crash, power_loss"
    assert found["FLUSH-2"].verdict is Verdict.NOT_TESTED
    assert found["FLUSH-2"].detail == "the target does not support async_flush or flush_mode"


def test_the_same_seed_gives_the_same_run() -> None:
    def seen(seed: int) -> tuple[dict[str, dict[str, int]], list[bytes]]:
        targets: list[ImplTarget] = []

        def factory() -> ImplTarget:
            targets.append(ImplTarget())
            return targets[-1]

        examination = examine(factory, 2, seed, suite=FLUSH)
        logs = [repr(target.events).encode() for target in targets]
        return {i: dict(counts) for i, counts in examination.counts.items()}, logs

    assert seen(3) == seen(3)
    assert seen(3) != seen(4)


class Skips(ReferenceTarget):
    """Passes over the first message of each pull."""

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:
        return super().pull(topic, queue_id, offset + 1, max_count)


def test_a_violation_is_shrunk_to_a_script_with_its_replay_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_run, "SHRINK_EXAMPLES_MAX", 100)
    examination = examine(Skips, 100, 0, suite=FLUSH)
    found = {result.id: result for result in results(examination, Skips(), 100, 0)}
    assert overall(found.values()) is Verdict.VIOLATED
    violated = found["DELIV-4"]
    assert violated.replay == "mqproof conform --target reference --suite flush --seed 0 --examples 100"
    script = violated.witnesses[-1].timeline
    assert script[0].who.startswith("open a broker")
    assert script[0].at == "1"
    assert len(script) < 30
    # Only runs made during shrinking show anything about FLUSH-1 and SPEC-1.
    violated_too = {i: result for i, result in found.items() if result.verdict is Verdict.VIOLATED}
    assert violated_too.keys() == {"FLUSH-1", "DELIV-1", "DELIV-4", "SPEC-1"}
    assert all(violated_too[i].counts["wrong"] for i in CHECKERS.keys() & violated_too.keys())
    shorter = {i for i, result in violated_too.items() if "a shorter run" in result.detail}
    assert shorter == {"FLUSH-1", "SPEC-1"}


class Mortal(ReferenceTarget):
    """Fails permanently at one send, counted over all examples."""

    sends = 0
    sends_max = 0

    def open(self, setup: Setup) -> None:
        self._reach("connect")
        super().open(setup)

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:
        Mortal.sends += 1
        self._reach("send")
        return super().send(topic, queue_id, msg_id, body)

    def close(self) -> None:
        self._reach("hang up")

    def _reach(self, what: str) -> None:
        if Mortal.sends >= Mortal.sends_max:
            raise TargetError(f"no {what}")


# With the second value, the failing example begins like an earlier one that did not fail.
# Hypothesis reports that the two differ.
@pytest.mark.parametrize("sends", [5, 300])
def test_a_target_that_dies_is_reported_with_the_cause(monkeypatch: pytest.MonkeyPatch, sends: int) -> None:
    monkeypatch.setattr(Mortal, "sends", 0)
    monkeypatch.setattr(Mortal, "sends_max", sends)
    with pytest.raises(TargetError, match="no send"):
        examine(Mortal, 60, 7, suite=FLUSH)
    assert Mortal.sends == sends


class Moody(ReferenceTarget):
    """Sometimes does not answer, independently of earlier examples with the same steps."""

    chance = random.Random(1)

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:
        if self.chance.random() < 0.05:
            return Sent(Outcome.INDETERMINATE, "no answer", under_way=True)
        return super().send(topic, queue_id, msg_id, body)


def test_a_nondeterministic_target_is_examined_to_the_end() -> None:
    examination = examine(Moody, 30, 1, suite=FLUSH)
    assert (examination.examples, examination.failures) == (30, {})


class DiesOfIt(Skips):
    """Has a defect, and cannot be opened any more after a while, during shrinking."""

    opened = 0

    def open(self, setup: Setup) -> None:
        DiesOfIt.opened += 1
        if DiesOfIt.opened > 30:
            raise TargetError("no answer")
        super().open(setup)


def test_a_violation_is_kept_if_the_target_dies_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiesOfIt, "opened", 0)
    examination = examine(DiesOfIt, 50, 0, suite=FLUSH)
    assert "DELIV-4" in examination.failures
    assert DiesOfIt.opened == 31


def test_progress_is_reported_after_every_example() -> None:
    reported: list[tuple[int, int]] = []
    examine(ReferenceTarget, 5, 0, lambda done, most: reported.append((done, most)), suite=FLUSH)
    assert reported == [(n, 5) for n in range(1, 6)]


def test_a_mutant_leaves_nothing_behind() -> None:
    from mqproof.impl.store.message_store import MessageStore

    right = MessageStore.when_settled
    target = MutantTarget(MUTANTS["ack-before-flush"])
    target.open(Setup(SYNC_FLUSH))
    assert MessageStore.when_settled is not right
    target.close()
    assert MessageStore.when_settled is right


@pytest.fixture
def name_server(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a name server with one broker, in a separate process."""
    command = [sys.executable, "-m", "mqproof", "serve", "--namesrv-port", "0", "--broker-port", "0"]
    with subprocess.Popen(
        [*command, "--store", str(tmp_path / "store")], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            ready = dict(part.split("=") for part in server.stdout.readline().split()[1:])
            yield ready["namesrv"]
        finally:
            server.terminate()
            server.wait(timeout=120)


def test_a_cluster_is_judged_over_the_wire_and_unavailable_ways_are_not_tested(
    name_server: str,
) -> None:
    factory = resolve(f"remoting://{name_server}")
    assert isinstance(factory(), WireOnly)
    verdicts = {result.id: result.verdict for result in run_suite(factory, 6, seed=0, suite=FLUSH)}
    not_tested = {i for i, verdict in verdicts.items() if verdict is Verdict.NOT_TESTED}
    assert not_tested == {"FLUSH-1", "FLUSH-2", "FLUSH-5", "FLUSH-7", "FLUSH-8"}
    assert {verdicts[i] for i in verdicts.keys() - not_tested} == {Verdict.HELD}


class _Endless(MyBroker):
    """A broker whose third pull computes without an end."""

    def open(self, setup: Setup) -> None:
        super().open(setup)
        self._pulls = 0

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:
        self._pulls += 1
        until = time.process_time() + 20
        while self._pulls > 2 and time.process_time() < until:
            pass
        return super().pull(topic, queue_id, offset, max_count)


def test_target_that_computes_without_an_end_violates_spec_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_bounds, "EXAMPLE_SECONDS_MAX", 0.5)
    examination = examine(_Endless, 50, 0, suite=FLUSH)
    failure = examination.failures[SPEC_1]
    assert failure.finding.verdict is Verdict.VIOLATED
    assert "processor time" in failure.finding.witnesses[0].text
    assert failure.script, "the steps before the endless one are missing"


class _Blocked(MyBroker):
    """A broker whose pull does not return."""

    def pull(self, *_: object) -> Pulled:
        time.sleep(600)
        raise AssertionError


def test_target_whose_call_does_not_return_violates_spec_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_bounds, "EXAMPLE_REAL_SECONDS_MAX", 0.3)
    failure = examine(_Blocked, 50, 0, suite=FLUSH).failures[SPEC_1]
    assert failure.finding.witnesses[0].text == "a call of the target did not return"
    assert failure.script, "the steps before the endless one are missing"


class _Stuck(MyBroker):
    """A broker whose pull waits for an event that cannot happen."""

    def pull(self, *_: object) -> Pulled:
        loop = SimulatedLoop()
        never: asyncio.Future[Pulled] = loop.create_future()
        try:
            return simulated_loops.run(loop, never)
        finally:
            loop.close()


def test_target_that_never_answers_violates_spec_1() -> None:
    failure = examine(_Stuck, 50, 0, suite=FLUSH).failures[SPEC_1]
    assert "cannot happen" in failure.finding.witnesses[0].text


def test_shrinking_ends_in_time_and_keeps_the_drawn_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_run, "SHRINK_SECONDS_MAX", -1.0)
    opened = [0]

    def in_another_process() -> MutantTarget:
        opened[0] += 1
        target = MutantTarget(MUTANTS["pull-skips"])
        target.name = "remoting://slow"
        return target

    examination = examine(in_another_process, 100, 0, suite=FLUSH)
    failure = examination.failures["DELIV-4"]
    assert failure.drawn
    assert opened[0] <= failure.examples + 2, "only the repetition of the failing run, and one that shrinks"
