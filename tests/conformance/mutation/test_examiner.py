"""One mutant is judged in a process: detected, broken or endless."""

from mqproof.conformance.mutation import campaign
from mqproof.conformance.mutation.campaign import modules
from mqproof.conformance.mutation.examiner import Outcome, Task
from mqproof.conformance.mutation.operators import mutants

_CHOICE = "mqproof.impl.client.producing.queue_choice"
_SUITE = "producers"


def _number(module: str, text: str) -> int:
    source = modules(("client",))[module].read_text(encoding="utf-8")
    return next(mutant.number for mutant in mutants(module, source) if text in mutant.after)


def test_defect_of_the_client_is_detected_by_its_suite() -> None:
    task = Task(_CHOICE, _number(_CHOICE, "- 1"), (_SUITE,), 20, 0, 60)
    verdict = campaign._in_a_process(task)
    assert verdict.outcome in {Outcome.VIOLATION, Outcome.BROKEN}
    assert verdict.suite == _SUITE


def test_module_that_cannot_be_imported_is_broken_and_names_the_suite() -> None:
    verdict = campaign._in_a_process(Task(_CHOICE, 10**9, (_SUITE,), 1, 0, 60))
    assert (verdict.outcome, verdict.suite) == (Outcome.BROKEN, _SUITE)


def test_process_without_an_end_is_endless() -> None:
    verdict = campaign._in_a_process(Task("", 0, (_SUITE,), 100_000, 0, 2))
    assert (verdict.outcome, verdict.suite) == (Outcome.ENDLESS, _SUITE)
