"""One mutant is judged in a process: detected, broken, endless, or not detected within the time."""

from collections.abc import Iterator

import pytest

from mqproof.conformance.mutation.examiner import Judge, Outcome, Task
from mqproof.conformance.mutation.fork_server import ForkServer, ServerError
from mqproof.conformance.mutation.loading import modules, source_of
from mqproof.conformance.mutation.operators import mutants

_CHOICE = "mqproof.impl.client.producing.queue_choice"
_SUITE = "producers"
_JUDGES = (Judge(_SUITE),)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as running:
        yield running


def _number(module: str, text: str) -> int:
    source = modules(("client",))[module].read_text(encoding="utf-8")
    return next(mutant.number for mutant in mutants(module, source) if text in mutant.after)


def _patched(before: str, after: str) -> Task:
    source = source_of(_CHOICE).read_text(encoding="utf-8")
    assert before in source
    return Task("", 0, _JUDGES, 20, 0, 60, patched={_CHOICE: source.replace(before, after)})


def test_defect_of_the_client_is_detected_by_its_suite_in_a_fork(server: ForkServer) -> None:
    task = Task(_CHOICE, _number(_CHOICE, "- 1"), _JUDGES, 20, 0, 60)
    verdict = server.judge(task)
    assert verdict.outcome in {Outcome.VIOLATION, Outcome.BROKEN}
    assert verdict.suite == _SUITE


def test_a_patch_is_imported_in_a_new_process(server: ForkServer) -> None:
    verdict = server.judge(_patched("import ", "import nothing_of_this_name, "))
    assert (verdict.outcome, verdict.suite) == (Outcome.BROKEN, _SUITE)
    assert verdict.cpu_s < 20


def test_the_original_code_survives_until_the_time_is_used_up(server: ForkServer) -> None:
    verdict = server.judge(Task("", 0, (Judge(_SUITE, 100_000),), 100_000, 0, 1))
    assert (verdict.outcome, verdict.suite) == (Outcome.SURVIVED, "")
    assert verdict.by == "time used up in producers, 100000 examples"
    assert verdict.cpu_s < 1


def test_a_mutant_that_never_ends_is_endless(server: ForkServer) -> None:
    verdict = server.judge(_endless())
    assert (verdict.outcome, verdict.suite) == (Outcome.ENDLESS, _SUITE)


def _endless() -> Task:
    """Return a patch whose import never ends, with little time."""
    source = "while True:\n    pass\n" + source_of(_CHOICE).read_text(encoding="utf-8")
    return Task("", 0, _JUDGES, 1, 0, 1, patched={_CHOICE: source})


def test_a_server_that_has_ended_is_an_error() -> None:
    with ForkServer() as ended:
        ended._process.kill()
        with pytest.raises(ServerError, match="ended with status -9"):
            ended.judge(Task("", 0, _JUDGES, 1, 0, 60))


@pytest.mark.deep("10 CPU seconds")
def test_a_group_whose_offsets_stay_after_a_deletion_with_the_flag_of_5_is_detected(
    server: ForkServer,
) -> None:
    module = "mqproof.impl.broker.processors.group_admin"
    source = modules(("broker",))[module].read_text(encoding="utf-8")
    (number,) = (
        mutant.number
        for mutant in mutants(module, source)
        if mutant.before == "header.remove_offset or header.clean_offset"
        and mutant.after == "header.remove_offset"
    )
    verdict = server.judge(Task(module, number, (Judge("admin", 20),), 20, 0, 60))
    assert (verdict.outcome, verdict.suite) == (Outcome.VIOLATION, "admin")
