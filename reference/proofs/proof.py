"""What an inductive proof is, and how its obligations are put to Z3.

A proof gives the transitions of a TLA+ module as functions from a state to a guard and the state after, and
an inductive invariant as a conjunction of named clauses. Shown apart: every initial state satisfies the
clauses, every action keeps them, and together they imply each safety invariant of the catalogue.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

import z3

from reference.proofs.logic import UNBOUNDED, Kind, Scope, Term, conjunction, negation
from reference.proofs.state import shape, symbol, symbols, values_of, variables, within

TIMEOUT_MS: Final = 20_000

Parameter = Kind | tuple[Kind, ...]
"""The kind of a value, or of a function's value and its arguments."""
Clause = Callable[[Scope, Any], Term]
StepClause = Callable[[Scope, Any, str, Any], Term]


@dataclass(frozen=True, slots=True)
class Action:
    """One action, named as in the TLA+ module."""

    name: str
    apply: Callable[..., tuple[Term, Any]]
    """(scope, state, *parameters) to the guard and the state after."""
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    name: str
    module: str
    """The TLA+ module, and the reference's model, whose actions these are."""
    state: type[Any]
    initial: Clause
    actions: tuple[Action, ...]
    clauses: Mapping[str, Clause]
    """Together the inductive invariant."""
    safety: Mapping[str, Clause]
    """Catalogue name to what the module states."""
    step_safety: Mapping[str, StepClause]
    """Catalogue name to a predicate of a step."""
    unbounded: tuple[str, ...]
    assumptions: tuple[str, ...]
    """What a reader must grant beyond the TLA+ module and the solver."""
    scope: Scope
    """How large a state a counterexample to induction is looked for in."""
    lemmas: Mapping[str, Callable[[], Term]] = field(default_factory=dict)
    """Facts about numbers and functions alone, shown valid."""


class Outcome(StrEnum):
    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


INIT: Final = "Init"
INVARIANT: Final = "Invariant"


@dataclass(frozen=True, slots=True)
class Obligation:
    """premise => conclusion. The premise is Init, the invariant, or the invariant and an action's step."""

    premise: str
    conclusion: str
    """A clause, or a catalogue name."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """To induction: a state that satisfies the invariant, not necessarily a reachable one, and a bad step."""

    before: Mapping[str, Any]
    action: str
    parameters: tuple[Any, ...]
    after: Mapping[str, Any]
    """Shapes of states."""


@dataclass(frozen=True, slots=True)
class Answer:
    obligation: Obligation
    outcome: Outcome
    seconds: float
    counterexample: Counterexample | None = None


def obligations(proof: Proof) -> Iterator[Obligation]:
    """Everything that must be shown, in a fixed order."""
    yield from (Obligation("Lemma", name) for name in proof.lemmas)
    yield from (Obligation(INIT, clause) for clause in proof.clauses)
    for action in proof.actions:
        yield from (Obligation(action.name, name) for name in (*proof.clauses, *proof.step_safety))
    yield from (Obligation(INVARIANT, name) for name in proof.safety)


@dataclass(frozen=True, slots=True)
class _Query:
    """An obligation's negation, and the terms that a model of it is read by."""

    formula: Term
    before: Any
    parameters: tuple[tuple[Term, tuple[Kind, ...]], ...] = ()
    after: Any = None


def prove(proof: Proof, obligation: Obligation, timeout_ms: int = TIMEOUT_MS) -> Answer:
    """Asks for the unbounded obligation; where Z3 does not prove it, looks for a small counterexample."""
    started = time.perf_counter()
    solver = z3.Solver()
    solver.set("timeout", timeout_ms)
    solver.add(_query(proof, obligation, UNBOUNDED).formula)
    if solver.check() == z3.unsat:
        return Answer(obligation, Outcome.PROVED, time.perf_counter() - started)
    return replace(refute(proof, obligation, timeout_ms), seconds=time.perf_counter() - started)


def refute(proof: Proof, obligation: Obligation, timeout_ms: int = TIMEOUT_MS) -> Answer:
    """Looks for a counterexample in the proof's scope; none found says nothing."""
    started = time.perf_counter()
    query = _query(proof, obligation, proof.scope)
    solver = z3.Solver()
    solver.set("timeout", timeout_ms)
    solver.add(query.formula)
    found = solver.check() == z3.sat
    return Answer(
        obligation,
        Outcome.REFUTED if found else Outcome.UNKNOWN,
        time.perf_counter() - started,
        _read(proof, obligation, query, solver.model()) if found else None,
    )


def _query(proof: Proof, obligation: Obligation, scope: Scope) -> _Query:
    if obligation.premise == "Lemma":
        return _Query(negation(proof.lemmas[obligation.conclusion]()), None)
    before = symbols(proof.state)
    small = _small(scope, before)
    if obligation.premise == INIT:
        conclusion = proof.clauses[obligation.conclusion](scope, before)
        return _Query(conjunction(small, proof.initial(scope, before), negation(conclusion)), before)
    invariant = conjunction(small, *(clause(scope, before) for clause in proof.clauses.values()))
    if obligation.premise == INVARIANT:
        conclusion = proof.safety[obligation.conclusion](scope, before)
        return _Query(conjunction(invariant, negation(conclusion)), before)
    action = next(action for action in proof.actions if action.name == obligation.premise)
    kinds = tuple(map(kinds_of, action.parameters))
    parameters = tuple(symbol(f"parameter{i}", *each) for i, each in enumerate(kinds))
    typed = (within(scope, *each, term) for each, term in zip(kinds, parameters, strict=True))
    guard, after = action.apply(scope, before, *parameters)
    if obligation.conclusion in proof.step_safety:
        conclusion = proof.step_safety[obligation.conclusion](scope, before, action.name, after)
    else:
        conclusion = {**proof.clauses, **proof.safety}[obligation.conclusion](scope, after)
    shown = tuple((term, arguments) for term, (_, arguments) in zip(parameters, kinds, strict=True))
    return _Query(conjunction(invariant, *typed, guard, negation(conclusion)), before, shown, after)


def _small(scope: Scope, state: Any) -> Term:
    """The state fits a bounded scope. Nothing is assumed of an unbounded one."""
    if not scope.sizes:
        return True
    return conjunction(
        *(within(scope, v.value, v.arguments, getattr(state, v.name)) for v in variables(state))
    )


def kinds_of(parameter: Parameter) -> tuple[Kind, tuple[Kind, ...]]:
    value, *arguments = parameter if isinstance(parameter, tuple) else (parameter,)
    return replace(value, nobody=False), tuple(arguments)


# Reading a counterexample out of a model


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
