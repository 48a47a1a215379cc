"""Defines an inductive proof, and puts its obligations to Z3.

A proof gives the transitions of a TLA+ module as functions from a state to a guard and the state after. It
gives an inductive invariant as a conjunction of named clauses. The obligations are separate: every initial
state satisfies the clauses, every action keeps them, and together they imply each safety invariant of the
catalogue.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import z3

from mqproof.reference.proofs.logic import UNBOUNDED, Kind, Scope, Term, conjunction, negation
from mqproof.reference.proofs.variables import shape, symbol, symbols, values_of, variables, within

TIMEOUT_MS: Final = 20_000
_FIRST_TIMEOUT_MS: Final = 500

Parameter = Kind | tuple[Kind, ...]
"""The kind of a value, or of a function's value and its arguments."""
Clause = Callable[[Scope, Any], Term]
StepClause = Callable[[Scope, Any, str, Any], Term]


@dataclass(frozen=True, slots=True)
class Action:
    """One action, named as in the TLA+ module."""

    name: str
    apply: Callable[..., tuple[Term, Any]]
    """Maps (scope, state, *parameters) to the guard and the state after."""
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    name: str
    module: str
    """The TLA+ module, and the reference's model, whose actions these are."""
    state: type[Any]
    initial: Clause
    actions: tuple[Action, ...]
    clauses: Mapping[str, Clause]
    """The clauses whose conjunction is the inductive invariant."""
    safety: Mapping[str, Clause]
    """Maps a catalogue name to the module's statement."""
    step_safety: Mapping[str, StepClause]
    """Maps a catalogue name to a predicate of a step."""
    unbounded: tuple[str, ...]
    assumptions: tuple[str, ...]
    """The assumptions that a reader must accept beyond the TLA+ module and the solver."""
    scope: Scope
    """The size of the states in which a counterexample to induction is searched for."""
    base: Scope = UNBOUNDED
    """The scope of the proof: unbounded, except for given sizes, such as the number of nodes."""
    lemmas: Mapping[str, Callable[[], Term]] = field(default_factory=dict)
    """Facts about numbers and functions alone, which are shown to be valid."""


class Outcome(StrEnum):
    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


LEMMA: Final = "Lemma"
INIT: Final = "Init"
INVARIANT: Final = "Invariant"


@dataclass(frozen=True, slots=True)
class Obligation:
    """An implication, premise => conclusion.

    The premise is Init, the invariant, or the invariant and an action's step.
    """

    premise: str
    conclusion: str
    """A clause, or a catalogue name."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A counterexample to induction: a state that satisfies the invariant, and a bad step.

    The state may be unreachable.
    """

    before: Mapping[str, Any]
    """The state before the step, as `variables.shape` returns it."""
    action: str
    parameters: tuple[Any, ...]
    after: Mapping[str, Any]
    """The state after the step, in the same form; empty if the obligation is not about a step."""


@dataclass(frozen=True, slots=True)
class Answer:
    obligation: Obligation
    outcome: Outcome
    seconds: float
    counterexample: Counterexample | None = None


def obligations(proof: Proof) -> Iterator[Obligation]:
    """Yield everything that must be shown, in a fixed order."""
    yield from (Obligation(LEMMA, name) for name in proof.lemmas)
    yield from (Obligation(INIT, clause) for clause in proof.clauses)
    for action in proof.actions:
        yield from (Obligation(action.name, name) for name in (*proof.clauses, *proof.step_safety))
    yield from (Obligation(INVARIANT, name) for name in proof.safety)


@dataclass(frozen=True, slots=True)
class _Query:
    """An obligation's negation, and the terms by which a model of it is read."""

    premise: Term
    conclusion: Term
    before: Any
    parameters: tuple[tuple[Term, tuple[Kind, ...]], ...] = ()
    after: Any = None


def prove(proof: Proof, obligation: Obligation, timeout_ms: int = TIMEOUT_MS) -> Answer:
    """Prove the unbounded obligation; if Z3 cannot, search for a small counterexample."""
    started = time.perf_counter()
    query = _query(proof, obligation, small=False)
    if _is_assumed(proof, obligation, query) or _is_valid(query, timeout_ms):
        return Answer(obligation, Outcome.PROVED, time.perf_counter() - started)
    return replace(refute(proof, obligation, timeout_ms), seconds=time.perf_counter() - started)


def _is_valid(query: _Query, timeout_ms: int) -> bool:
    """Return whether Z3 proves the query.

    Quantifiers are first tried by their triggers alone, which ends soon; then by searching for models. Each
    way has a short time before any has the whole time: what takes one way seconds may take another
    milliseconds. Each query has a context of its own. In a common context the solver's search order depends
    on all earlier queries.
    """
    asked = z3.And(query.premise, negation(query.conclusion)).translate(z3.Context())
    triggers: dict[str, bool | int] = {"auto_config": False, "smt.mbqi": False}
    ways: list[dict[str, bool | int]] = [triggers, {**triggers, "smt.relevancy": 0}, {}]
    times = sorted({min(_FIRST_TIMEOUT_MS, timeout_ms), timeout_ms})
    return any(_is_contradiction(asked, limit, options) for limit in times for options in ways)


def _is_contradiction(asked: z3.BoolRef, timeout_ms: int, options: Mapping[str, bool | int]) -> bool:
    solver = z3.Solver(ctx=asked.ctx)
    solver.set(timeout=timeout_ms, **options)
    solver.add(asked)
    return bool(solver.check() == z3.unsat)


def _is_assumed(proof: Proof, obligation: Obligation, query: _Query) -> bool:
    """Return whether the action changes nothing that the clause reads.

    The formula after the step is then identical.
    """
    if query.after is None or obligation.conclusion not in proof.clauses:
        return False
    unchanged = proof.clauses[obligation.conclusion](proof.base, query.before)
    return z3.is_ast(query.conclusion) and bool(query.conclusion.eq(unchanged))


def refute(proof: Proof, obligation: Obligation, timeout_ms: int = TIMEOUT_MS) -> Answer:
    """Search for a counterexample in the proof's scope. Finding none proves nothing."""
    started = time.perf_counter()
    query = _query(proof, obligation, small=True)
    solver = z3.Solver()
    solver.set(timeout=timeout_ms)
    solver.add(query.premise, negation(query.conclusion))
    found = query.before is not None and solver.check() == z3.sat
    return Answer(
        obligation,
        Outcome.REFUTED if found else Outcome.UNKNOWN,
        time.perf_counter() - started,
        _read(proof, obligation, query, solver.model()) if found else None,
    )


def _query(proof: Proof, obligation: Obligation, *, small: bool) -> _Query:
    """Return the query in the proof's small scope, or in its unbounded one."""
    scope = proof.scope if small else proof.base
    if obligation.premise == LEMMA:
        return _Query(True, proof.lemmas[obligation.conclusion](), None)
    query = _premise(proof, obligation.premise, small)
    if obligation.conclusion in proof.step_safety:
        holds = proof.step_safety[obligation.conclusion]
        return replace(query, conclusion=holds(scope, query.before, obligation.premise, query.after))
    clause = {**proof.clauses, **proof.safety}[obligation.conclusion]
    return replace(query, conclusion=clause(scope, query.after or query.before))


@lru_cache(maxsize=2)
def _premise(proof: Proof, premise: str, small: bool) -> _Query:
    """Return the common part of an action's obligations; the conclusion is open."""
    scope = proof.scope if small else proof.base
    before = symbols(proof.state)
    fits = _small(scope, before) if small else True
    if premise == INIT:
        return _Query(conjunction(fits, proof.initial(scope, before)), False, before)
    invariant = conjunction(fits, *(clause(scope, before) for clause in proof.clauses.values()))
    if premise == INVARIANT:
        return _Query(invariant, False, before)
    action = next(action for action in proof.actions if action.name == premise)
    kinds = tuple(map(kinds_of, action.parameters))
    parameters = tuple(
        i if value.alike else symbol(f"parameter{i}", value, arguments)
        for i, (value, arguments) in enumerate(kinds)
    )
    typed = (within(scope, *each, term) for each, term in zip(kinds, parameters, strict=True))
    guard, after = action.apply(scope, before, *parameters)
    shown = tuple((term, arguments) for term, (_, arguments) in zip(parameters, kinds, strict=True))
    return _Query(conjunction(invariant, *typed, guard), False, before, shown, after)


def _small(scope: Scope, state: Any) -> Term:
    """Require that the state fits a bounded scope. For an unbounded one nothing is required."""
    return conjunction(
        *(within(scope, v.value, v.arguments, getattr(state, v.name)) for v in variables(state))
    )


def kinds_of(parameter: Parameter) -> tuple[Kind, tuple[Kind, ...]]:
    value, *arguments = parameter if isinstance(parameter, tuple) else (parameter,)
    return replace(value, optional=False), tuple(arguments)


# Reading a counterexample from a model


def _read(proof: Proof, obligation: Obligation, query: _Query, model: z3.ModelRef) -> Counterexample:
    def value(term: Term) -> Any:
        if isinstance(term, int):
            return term
        found = model.eval(term, model_completion=True)
        return z3.is_true(found) if z3.is_bool(found) else found.as_long()

    return Counterexample(
        before=shape(proof.scope, query.before, value),
        action=obligation.premise,
        parameters=tuple(
            values_of(proof.scope, term, arguments, value) for term, arguments in query.parameters
        ),
        after=shape(proof.scope, query.after, value) if query.after else {},
    )
