"""Goal: the judge reports how a mutant was detected, or that it survived. Method: mutants of Counter."""

from pathlib import Path

import pytest

from mqproof.spec.model_file import Kind, load
from mqproof.spec.mutation.judge import Judge, Noticed, Space, Stage, Subject
from mqproof.spec.mutation.operators import Kind as MutantKind
from mqproof.spec.mutation.operators import Mutant, mutants
from mqproof.spec.tlc.graph import ground

MODELS = load(Path(__file__).parents[1] / "models.toml")
RUN = next(question for question in MODELS.questions["Counter"] if question.kind is Kind.CHECK)
ACTIONS: dict[str, list[tuple[str, ...]]] = {
    "Take": [("n1",), ("n2",)],
    "Add": [(node, by) for node in ("n1", "n2") for by in ("1", "2")],
    "Drop": [()],
}
SPACE = Space("Counter", "Counter", ground("Counter", RUN.config.text(), ACTIONS), "Next")
PROBES = next(question for question in MODELS.questions["Counter"] if question.kind is Kind.PROBES)
SUBJECT = Subject("Counter", (Stage((RUN,), (SPACE,), (PROBES,)),), MODELS.libraries)


DEEP = pytest.mark.deep("five runs of TLC; test_own_model.py has such a mutant in every run")


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge(SUBJECT)


def mutant(before: str, after: str) -> Mutant:
    assert SUBJECT.text.count(before) == 1
    text = SUBJECT.text.replace(before, after)
    return Mutant("Counter.X.guard.1", "X", MutantKind.GUARD, 1, 1, before, after, text)


@pytest.mark.parametrize(
    ("before", "after", "noticed", "by"),
    [
        ("count[n] + by <= Max", "TRUE", Noticed.PROPERTY, "TypeOK"),
        ("![n] = @ + by]", "![n] = @ + owner]", Noticed.EVALUATION, "evaluation error"),
        pytest.param(
            *("count[n] + by <= Max", "count[n] + by < Max", Noticed.WITNESS, "~NeverFull"), marks=DEEP
        ),
        (
            "by \\in 1..2 : Add(n, by)\n    \\/",
            "by \\in 2..2 : Add(n, by)\n    \\/",
            Noticed.EQUIV,
            "not the union",
        ),
        ("Drop == owner # NoNode /\\", "Drop == /\\", Noticed.LABELS, "steps more, 0 fewer"),
        pytest.param(*("\n    \\/ Drop\n", "\n", Noticed.WITNESS, "Drop"), marks=DEEP),
        pytest.param(
            *("log' = <<[node |-> n, by |-> by]>>", "log' = <<[node |-> owner, by |-> by]>>"),
            *(Noticed.NOT, ""),
            marks=DEEP,
        ),
        ("UNCHANGED owner", "UNCHANGED ownr", Noticed.UNPARSED, "parse error"),
    ],
)
def test_the_judgement_states_how_the_mutant_was_detected(
    judge: Judge, before: str, after: str, noticed: Noticed, by: str
) -> None:
    judgement = judge.judge(mutant(before, after), SUBJECT.stages[0])
    assert judgement.noticed is noticed, judgement
    assert by in judgement.by


def test_the_counter_model_has_14_mutants() -> None:
    assert len(mutants(SUBJECT.text, "Next")) == 14
