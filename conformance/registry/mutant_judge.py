"""Judges the suites by their mutants: the named invariant must detect each injected defect.

`HUNTS` has a line for each suite: its mutants, and the search for them. `mqproof mutants --layer impl` runs
all; `python -m mqproof.conformance.pages.mutants` writes the results into
docs/reference/conformance/mutants.md.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final

from mqproof.conformance.adapters import damaged_brokers, own_checks
from mqproof.conformance.adapters.attacked_servers import attacked
from mqproof.conformance.adapters.brokers import push_members
from mqproof.conformance.adapters.brokers.factories import EXAMINEES
from mqproof.conformance.adapters.mutant_broker import MutantTarget
from mqproof.conformance.adapters.producers.factories import ImplProducer
from mqproof.conformance.adapters.routing.name_servers import MutantNameServer
from mqproof.conformance.adapters.workload import clusters
from mqproof.conformance.behaviours.corpus import Script, file_of, read, read_lines
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.behaviours.replay import replay
from mqproof.conformance.damage import damage_run
from mqproof.conformance.damage.cases import CASES as DAMAGES
from mqproof.conformance.damage.checkers import damage_settled
from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_definition import Suite, option
from mqproof.conformance.engine.suite_run import examine
from mqproof.conformance.engine.targets import IMPL, MUTANT, InternalError
from mqproof.conformance.history.judge import judge as judge_history
from mqproof.conformance.history.workload import Workload
from mqproof.conformance.hostile.attack_run import run as run_attacks
from mqproof.conformance.hostile.attacks import ATTACKS
from mqproof.conformance.hosts import sandbox
from mqproof.conformance.mutants import (
    answers,
    consumers,
    convergence,
    dledger,
    filter_servers,
    hostile,
    order_lock,
    replication,
    retry,
    timers,
    tracing,
    transactions,
    wire,
    workload,
)
from mqproof.conformance.mutants import damage as damage_mutants
from mqproof.conformance.mutants import producers as producers_mutants
from mqproof.conformance.mutants import routing as routing_mutants
from mqproof.conformance.mutants.flush import MUTANTS
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.subjects import convergence_run, damaged_peers, group_run
from mqproof.conformance.subjects.pair_run import live
from mqproof.conformance.subjects.stepped.model_targets import resolve as behaviour_target
from mqproof.conformance.suites.convergence.checkers import CHECKERS as CONVERGENCE_CHECKERS
from mqproof.conformance.suites.dledger.checkers import CHECKERS as DLEDGER_CHECKERS
from mqproof.conformance.suites.flush.suite import FLUSH
from mqproof.conformance.suites.producers.suite import PRODUCERS
from mqproof.conformance.suites.replication import checkers
from mqproof.conformance.suites.routing.suite import ROUTING
from mqproof.conformance.wire.case_results import examine as examine_wire
from mqproof.conformance.wire.catalogue import choose
from mqproof.conformance.wire.model import Verdict as CaseVerdict
from mqproof.conformance.wire.runner import Judged
from mqproof.conformance.wire.server_connection import Address
from mqproof.report.model import Result, Verdict, Witness

LAYER: Final = "impl"
EXAMPLES_MAX: Final = 600
ATTACK_SECONDS_MAX: Final = 4.0
"""How long an attack on a mutant waits for a reaction: a missing limit often shows as silence."""

Progress = Callable[[str, int, int], None]
"""Called with (mutant, examples so far, maximum number of examples)."""


@dataclass(frozen=True, slots=True)
class Search:
    """The first seed and the maximum number of examples of a search."""

    seed: int = 0
    examples_max: int = EXAMPLES_MAX
    on_progress: Progress | None = None

    def report_progress(self, mutant: Mutant, examples: int) -> None:
        if self.on_progress:
            self.on_progress(mutant.name, examples, self.examples_max)


@dataclass(frozen=True, slots=True)
class Hunt:
    """The mutants that one suite must detect."""

    suite: str
    mutants: Mapping[str, Mutant]
    """The mutants by name. Their names are unique over all suites."""
    judge: Callable[[Mutant, Search], Result]
    """Returns HELD if the mutant was detected, VIOLATED if it survived."""


# The searches


def by_suite(suite: Suite, target: Callable[[Mutant], Any]) -> Callable[[Mutant, Search], Result]:
    """Search with examples of a suite, each on a target with the mutant."""

    def judge(mutant: Mutant, search: Search) -> Result:
        examination = examine(
            partial(target, mutant),
            search.examples_max,
            search.seed,
            lambda done, _: search.report_progress(mutant, done),
            suite=suite,
            wanted=frozenset({mutant.breaks}),
            shrink=False,
        )
        caught = examination.failures.get(mutant.breaks)
        replay = (
            f"mqproof conform --target {MUTANT}{mutant.name}{option(suite)} --seed {search.seed}"
            f" --examples {search.examples_max}"
        )
        witnesses = caught.finding.witnesses if caught else ()
        return _result(mutant, search, witnesses, examination.examples, examination.seconds, replay)

    return judge


def by_seed(look: Callable[[Mutant, int], tuple[Witness, ...]]) -> Callable[[Mutant, Search], Result]:
    """Search with one seed after the other, with the defect injected, until there is a witness."""

    def judge(mutant: Mutant, search: Search) -> Result:
        began = time.monotonic()
        witnesses: tuple[Witness, ...] = ()
        examples = 0
        with injected(mutant):
            while not witnesses and examples < search.examples_max:
                witnesses = look(mutant, search.seed + examples)
                examples += 1
                search.report_progress(mutant, examples)
        replay = f"mqproof mutants --layer {LAYER} --only {mutant.name}"
        return _result(mutant, search, witnesses, examples, time.monotonic() - began, replay)

    return judge


def _result(
    mutant: Mutant,
    search: Search,
    witnesses: tuple[Witness, ...],
    examples: int,
    seconds: float,
    replay: str,
) -> Result:
    return Result(
        id=mutant.breaks,
        name=mutant.name,
        layer=LAYER,
        verdict=Verdict.HELD if witnesses else Verdict.VIOLATED,
        counts={"examples": examples, "examples_max": search.examples_max},
        witnesses=witnesses or (Witness(mutant.defect),),
        detail=mutant.defect,
        replay=replay,
        seconds=seconds,
    )


def _of_a_pair(mutant: Mutant, seed: int) -> tuple[Witness, ...]:
    """Return the violations of the mutant's invariant in a random run of a master and a slave."""
    return checkers.CHECKERS[mutant.breaks](live(seed)).witnesses


def _of_a_dledger_group(mutant: Mutant, seed: int) -> tuple[Witness, ...]:
    """Return the violations of the mutant's invariant that a client of a DLedger group sees."""
    return DLEDGER_CHECKERS[mutant.breaks](group_run.live(seed)).witnesses


def _of_a_cluster(mutant: Mutant, seed: int) -> tuple[Witness, ...]:
    """Return the violations of the mutant's invariant that the routes of a client show."""
    return CONVERGENCE_CHECKERS[mutant.breaks](convergence_run.live(seed)).witnesses


def _of_a_workload(mutant: Mutant, seed: int) -> tuple[Witness, ...]:
    """Return the violations of the mutant's invariant in the history of a workload."""
    judged = judge_history(clusters.run(IMPL, Workload(messages=30, faults=1, seed=seed)))
    return tuple(
        witness
        for each in judged
        if each.rule.invariant == mutant.breaks and each.finding.verdict is Verdict.VIOLATED
        for witness in each.finding.witnesses
    )


def _of_a_group(mutant: Mutant, seed: int) -> tuple[Witness, ...]:
    """Return the violations of the mutant's invariant in a run of our push consumers."""
    try:
        finding = push_members.live(seed).findings()[mutant.breaks]
    except InternalError as error:
        return (Witness(str(error)),) if mutant.breaks == SPEC_1 else ()
    return finding.witnesses if finding.verdict is Verdict.VIOLATED else ()


def by_answers(mutant: Mutant, search: Search) -> Result:
    """Search with examples of a suite, on a target whose answers are watched."""
    examinee = EXAMINEES[answers.SUITES.get(mutant.name, answers.ANY_SUITE)]
    return by_suite(examinee.suite, examinee.mutant)(mutant, search)


def by_case(mutant: Mutant, search: Search) -> Result:
    """Run the wire case named by the mutant on servers with the defect."""
    return _by_case(mutant, search, mutant.breaks, wire.serving)


def by_filter_server(mutant: Mutant, search: Search) -> Result:
    """Run the wire case of a mutant of filter servers, if a filter server can run here."""
    if not sandbox.is_installed():
        return Result(mutant.breaks, mutant.name, LAYER, Verdict.NOT_TESTED, detail=sandbox.MISSING)
    case = filter_servers.CASES_OF.get(mutant.name, mutant.breaks)
    return _by_case(mutant, search, case, filter_servers.serving)


def _by_case(
    mutant: Mutant, search: Search, case: str, serving: Callable[[], AbstractContextManager[str]]
) -> Result:
    began = time.monotonic()
    with injected(mutant), serving() as address:
        judged = examine_wire([Address.parse(address)], choose([case]), lambda *_: None)
    search.report_progress(mutant, len(judged))
    witnesses = tuple(
        Witness(one.detail) for one in judged if isinstance(one, Judged) and one.verdict is CaseVerdict.FAILED
    )
    replay = f"mqproof mutants --layer {LAYER} --only {mutant.name}"
    return _result(mutant, search, witnesses, len(judged), time.monotonic() - began, replay)


def _of_damaged_peers(_: Mutant, seed: int) -> tuple[Witness, ...]:
    """Return what became of one damaged record, if it is neither repaired nor reported as it must be."""
    return tuple(map(Witness, damage_settled(damaged_peers.live(damaged_peers.point(seed)))))


def by_damage(mutant: Mutant, search: Search) -> Result:
    """Damage the files of a broker with the defect, case by case, until the invariant is violated."""
    began = time.monotonic()
    cases = 0
    witnesses: tuple[Witness, ...] = ()
    with injected(mutant), damaged_brokers.embedded() as broker:
        for observed in damage_run.run(broker, lambda _: True, DAMAGES, lambda *_: None):
            cases += 1
            search.report_progress(mutant, cases)
            if lines := observed.violations.get(mutant.breaks):
                witnesses = tuple(Witness(f"{observed.id}: {line}") for line in lines)
                break
    replay = f"mqproof conform --target {MUTANT}{mutant.name} --suite damage"
    return _result(mutant, search, witnesses, cases, time.monotonic() - began, replay)


def by_attack(mutant: Mutant, search: Search) -> Result:
    """Run the attack that the mutant must not withstand, on servers with the defect."""
    began = time.monotonic()
    attack = next(one for one in ATTACKS if one.name == hostile.ATTACKS_OF[mutant.name])
    with injected(mutant), attacked(attack.setup, is_small=True) as victim:
        judged = list(run_attacks(victim, (attack,), seconds_max=ATTACK_SECONDS_MAX))
    search.report_progress(mutant, len(judged))
    witnesses = tuple(Witness(failure) for one in judged for failure in one.failures)
    replay = f"mqproof mutants --layer {LAYER} --only {mutant.name}"
    return _result(mutant, search, witnesses, len(judged), time.monotonic() - began, replay)


def _covering(model: str) -> list[Script]:
    """Return the behaviours that cover the model.

    Behaviours that try disabled actions come first; among them, those that try them after their last step,
    because every disabled action can be tried there.
    """

    def later(script: Script) -> tuple[bool, bool]:
        return script.disabled_at != len(script.steps), not script.disabled

    return sorted(read(read_lines(file_of(model)), model), key=later)


def _of_a_behaviour(
    model: str, chosen: Callable[[str], Iterable[Script]] = _covering
) -> Callable[[Mutant, int], tuple[Witness, ...]]:
    """Replay one behaviour per seed and return the step at which our code deviates."""

    @cache
    def scripts() -> tuple[Script, ...]:
        return tuple(chosen(model))

    def look(_: Mutant, seed: int) -> tuple[Witness, ...]:
        make = behaviour_target(IMPL, model)
        assert make is not None, f"{model} has no target"
        seen = replay(make, [scripts()[seed % len(scripts())]])
        return tuple(Witness(failure.why, {"step": str(failure.at)}) for failure in seen.failures)

    return look


def _of_a_checkout() -> tuple[Hunt, ...]:
    """Return the mutants that only the checks of our own code detect; an installed package has neither."""
    if not own_checks.ARE_THERE:
        return ()
    from mqproof.conformance.mutants import inspections

    def of_an_inspection(mutant: Mutant, _: int) -> tuple[Witness, ...]:
        return own_checks.inspected(inspections.INSPECTIONS[mutant.name])

    return (
        Hunt("inspections", inspections.MUTANTS, by_seed(of_an_inspection)),
        Hunt("calls of the client", consumers.OF_CALLS, by_seed(_of_a_group)),
        Hunt("behaviours of Replication", replication.STEPPED, by_seed(_of_a_behaviour("Replication"))),
        Hunt(
            "conditions of Replication",
            replication.CONDITIONAL,
            by_seed(_of_a_behaviour("Replication", behaviours)),
        ),
        Hunt("behaviours of Election", dledger.MUTANTS, by_seed(_of_a_behaviour("Election"))),
        Hunt("behaviours of QueueChoice", producers_mutants.STEPPED, by_seed(_of_a_behaviour("QueueChoice"))),
        Hunt("behaviours of OrderLock", order_lock.MUTANTS, by_seed(_of_a_behaviour("OrderLock"))),
        Hunt("behaviours of Transactions", transactions.STEPPED, by_seed(_of_a_behaviour("Transactions"))),
        Hunt("behaviours of Timers", timers.STEPPED, by_seed(_of_a_behaviour("Timers"))),
        Hunt("behaviours of Retry", retry.STEPPED, by_seed(_of_a_behaviour("Retry"))),
        Hunt("behaviours of Tracing", tracing.MUTANTS, by_seed(_of_a_behaviour("Tracing"))),
    )


HUNTS: Final = (
    Hunt(FLUSH.name, MUTANTS, by_suite(FLUSH, MutantTarget)),
    Hunt("replication", replication.MUTANTS, by_seed(_of_a_pair)),
    Hunt("replication to two slaves", replication.OF_TWO_SLAVES, by_seed(_of_a_pair)),
    Hunt("dledger", dledger.OBSERVED, by_seed(_of_a_dledger_group)),
    Hunt("convergence", convergence.MUTANTS, by_seed(_of_a_cluster)),
    Hunt(ROUTING.name, routing_mutants.MUTANTS, by_suite(ROUTING, MutantNameServer)),
    Hunt(PRODUCERS.name, producers_mutants.MUTANTS, by_suite(PRODUCERS, ImplProducer)),
    *(Hunt(name, each.mutants, by_suite(each.suite, each.mutant)) for name, each in EXAMINEES.items()),
    Hunt("answers", answers.MUTANTS, by_answers),
    *_of_a_checkout(),
    Hunt("consumers", consumers.MUTANTS, by_seed(_of_a_group)),
    Hunt("workload", workload.MUTANTS, by_seed(_of_a_workload)),
    Hunt("wire", wire.MUTANTS, by_case),
    Hunt("filter servers", filter_servers.MUTANTS, by_filter_server),
    Hunt("damage", damage_mutants.MUTANTS, by_damage),
    Hunt("damage of peers", damage_mutants.OF_PEERS, by_seed(_of_damaged_peers)),
    Hunt("hostile", hostile.MUTANTS, by_attack),
)


def names() -> tuple[str, ...]:
    """Return the names of all mutants, in order."""
    return tuple(name for hunt in HUNTS for name in hunt.mutants)


def run(
    chosen: Sequence[str] = (),
    on_progress: Progress | None = None,
    *,
    seed: int = 0,
    examples_max: int = EXAMPLES_MAX,
) -> Iterator[Result]:
    """Yield the result of each mutant, or of each named one, as soon as it is known.

    It is HELD if the mutant was detected and VIOLATED if it survived. The layer is the suite.
    """
    search = Search(seed, examples_max, on_progress)
    for name in chosen or names():
        hunt = next(hunt for hunt in HUNTS if name in hunt.mutants)
        yield replace(hunt.judge(hunt.mutants[name], search), layer=f"{LAYER}/{hunt.suite}")
