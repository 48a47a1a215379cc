"""Turns proofs and their mutants into results of the common result model, with the table of obligations."""

import time
from collections.abc import Callable

from mqproof.reference.proofs.mutants.mutant import Mutant
from mqproof.reference.proofs.proof import (
    INVARIANT,
    Answer,
    Counterexample,
    Outcome,
    Proof,
    obligations,
    prove,
)
from mqproof.reference.proofs.variables import show
from mqproof.report.model import Result, Table, Verdict, Witness
from mqproof.spec.catalogue import id_of

VERDICTS = {
    Outcome.PROVED: Verdict.HELD,
    Outcome.REFUTED: Verdict.VIOLATED,
    Outcome.UNKNOWN: Verdict.UNKNOWN,
}


def judge(proof: Proof, on_stage: Callable[[str], None] = lambda _: None) -> tuple[list[Result], list[Table]]:
    """Return one result per safety invariant, and the table of the obligations put to Z3."""
    answers = []
    premise = ""
    for obligation in obligations(proof):
        if obligation.premise != premise:
            premise = obligation.premise
            on_stage(f"{proof.name}: {premise}")
        answers.append(prove(proof, obligation))
    return [_result(proof, name, answers) for name in (*proof.safety, *proof.step_safety)], [
        _table(proof, answers)
    ]


def _result(proof: Proof, name: str, answers: list[Answer]) -> Result:
    """Return an invariant's result: it holds if the whole inductive invariant is kept and implies it."""
    needed = [a for a in answers if a.obligation.conclusion == name or a.obligation.premise != INVARIANT]
    open_ones = sorted(
        (a for a in needed if a.outcome is not Outcome.PROVED), key=lambda a: a.outcome == Outcome.UNKNOWN
    )
    outcome = open_ones[0].outcome if open_ones else Outcome.PROVED
    return Result(
        id=id_of(proof.module, name),
        name=f"{proof.name} {name}",
        layer="reference",
        verdict=VERDICTS[outcome],
        counts={"obligations": len(needed), "proved": len(needed) - len(open_ones)},
        witnesses=tuple(witness(proof, answer) for answer in open_ones[:1]),
        detail="" if outcome is Outcome.PROVED else f"not proved: {_description(open_ones[0])}",
        replay=f"mqproof prove {proof.name}",
        seconds=sum(a.seconds for a in answers if a.obligation.conclusion == name),
    )


def _description(answer: Answer) -> str:
    o = answer.obligation
    found = "has a counterexample to induction" if answer.outcome is Outcome.REFUTED else "is undecided"
    return f"{o.premise} => {o.conclusion} {found}"


def _table(proof: Proof, answers: list[Answer]) -> Table:
    rows = []
    for premise in dict.fromkeys(answer.obligation.premise for answer in answers):
        asked = [answer for answer in answers if answer.obligation.premise == premise]
        missing = [answer for answer in asked if answer.outcome is not Outcome.PROVED]
        states = ", ".join(f"{a.obligation.conclusion}: {a.outcome}" for a in missing)
        rows.append((_shown(premise, len(asked)), states or "proved", f"{sum(a.seconds for a in asked):.1f}"))
    return Table(f"{proof.name}: obligations", ("obligation", "Z3", "seconds"), tuple(rows))


def _shown(premise: str, count: int) -> str:
    match premise:
        case "Lemma":
            return f"lemmas ({count})"
        case "Init":
            return f"Init => Inv ({count} clauses)"
        case "Invariant":
            return f"Inv => Safety ({count} invariants)"
    return f"Inv /\\ {premise} => Inv' ({count} clauses)"


def facts(proof: Proof) -> dict[str, str]:
    """Return the facts that a reader must know about the proof."""
    return {
        f"{proof.name}, unbounded": ", ".join(proof.unbounded),
        **{f"{proof.name}, granted {i}": text for i, text in enumerate(proof.assumptions, start=1)},
    }


def judge_mutant(mutant: Mutant) -> tuple[Result, list[Table]]:
    """Judge a mutant: HELD means that its proof failed. The table is its counterexample to induction."""
    started = time.perf_counter()
    answer = mutant.refuted()
    broken = answer.obligation.conclusion if answer else ""
    how = "at once" if broken == mutant.invariant else f"through the clause {broken}"
    result = Result(
        id=id_of(mutant.proof.module, mutant.invariant),
        name=mutant.full_name,
        layer="reference",
        verdict=Verdict.HELD if answer else Verdict.VIOLATED,
        counts={"counterexamples": 1} if answer else {},
        witnesses=(witness(mutant.proof, answer),) if answer else (),
        detail=f"{mutant.invariant} fails {how}"
        if answer
        else f"no counterexample to {mutant.invariant} found",
        replay=f"mqproof prove {mutant.proof.name} --mutants",
        seconds=time.perf_counter() - started,
    )
    return result, [counterexample(mutant.full_name, mutant.proof, answer)] if answer else []


def counterexample(title: str, proof: Proof, answer: Answer) -> Table:
    """Return the table of a state and of the step from it that violates a clause.

    The inductive invariant allows the state, which may be unreachable.
    """
    found = answer.counterexample
    assert found is not None, "only a refuted obligation has a counterexample"
    before, after = show(proof.state, found.before), show(proof.state, found.after) if found.after else {}
    return Table(
        f"{title}: {_step(found)} breaks {answer.obligation.conclusion}",
        ("variable", "before", "after"),
        tuple(
            (name, text, "" if after.get(name) == text else after.get(name, ""))
            for name, text in before.items()
        ),
    )


def _step(found: Counterexample) -> str:
    return found.action + (str(found.parameters).replace(",)", ")") if found.parameters else "")


def witness(proof: Proof, answer: Answer) -> Witness:
    found = answer.counterexample
    if found is None:
        return Witness("Z3 found neither a proof nor a small counterexample")
    before, after = show(proof.state, found.before), show(proof.state, found.after) if found.after else {}
    changed = (f"{name} = {text}" for name, text in after.items() if before[name] != text)
    return Witness(
        f"{_step(found)} breaks {answer.obligation.conclusion}: {'; '.join(changed) or 'no change'}",
        before,
    )
