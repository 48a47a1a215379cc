"""One mutant is judged in a process: detected, broken, endless, or not detected within the time."""

import signal
import subprocess
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from mqproof.conformance.mutation import campaign, examiner
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


def test_suites_that_hold_until_the_time_is_used_up_do_not_detect_the_mutant() -> None:
    verdict = campaign._in_a_process(Task("", 0, (_SUITE,), 100_000, 0, 4))
    assert (verdict.outcome, verdict.suite) == (Outcome.SURVIVED, "")
    assert verdict.by == "time used up in producers, 100000 examples"
    assert verdict.cpu_s < 4


def test_process_that_was_killed_by_its_limit_is_endless(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(command: list[str], **_: object) -> CompletedProcess[str]:
        return CompletedProcess(command, -signal.SIGXCPU, stdout='{"suite": "producers"}\n', stderr="")

    monkeypatch.setattr(subprocess, "run", killed)
    verdict = campaign._in_a_process(Task("", 0, (_SUITE,), 1, 0, 60))
    assert (verdict.outcome, verdict.suite) == (Outcome.ENDLESS, _SUITE)


def test_each_suite_runs_shortly_before_any_suite_runs_with_all_examples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[tuple[str, int]] = []

    def holds(suite: str, task: Task) -> Iterator[object]:
        ran.append((suite, task.examples))
        return iter(())

    monkeypatch.setattr(examiner, "_detections", holds)
    verdict = examiner.examine(Task("", 0, ("flush", "wire"), 50, 0, 60), lambda _: None)
    assert verdict.outcome is Outcome.SURVIVED
    assert ran == [("flush", 10), ("wire", 10), ("flush", 50)]


@pytest.mark.deep("10 CPU seconds")
def test_a_group_whose_offsets_stay_after_a_deletion_with_the_flag_of_5_is_detected() -> None:
    module = "mqproof.impl.broker.processors.group_admin"
    source = modules(("broker",))[module].read_text(encoding="utf-8")
    (number,) = (
        mutant.number
        for mutant in mutants(module, source)
        if mutant.before == "header.remove_offset or header.clean_offset"
        and mutant.after == "header.remove_offset"
    )
    verdict = campaign._in_a_process(Task(module, number, ("admin",), 20, 0, 60))
    assert (verdict.outcome, verdict.suite) == (Outcome.VIOLATION, "admin")
