"""The search prefers examples that reach more, and executed lines of impl/ are recorded by module."""

from collections.abc import Callable

from mqproof.conformance.adapters.reference import ReferenceTarget
from mqproof.conformance.engine.coverage_feedback import (
    PARTS,
    CodeCoverage,
    answers_seen,
    recorded,
    statements,
)
from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.scoreboard import WHITE_SPOTS, scoreboard
from mqproof.conformance.engine.suite_definition import Session
from mqproof.conformance.engine.suite_run import examine
from mqproof.conformance.suites.flush.suite import FLUSH
from mqproof.impl.client.producing.queue_choice import QueueChoice

MODULE = "client/producing/queue_choice.py"


def scripts(feedback: Callable[[Session], float] | None, examples: int) -> list[list[str]]:
    found: list[list[str]] = []
    examine(
        ReferenceTarget, examples, 0, suite=FLUSH, feedback=feedback,
        on_example=lambda _, session: found.append(session.script()),
    )  # fmt: skip
    return found


def test_the_search_prefers_examples_for_which_the_feedback_is_high() -> None:
    """The feedback counts sends; half of the examples are drawn before the search uses it."""

    def sends(session: Session) -> float:
        return float(sum(step.startswith("send") for step in session.script()))

    def mean(found: list[list[str]]) -> float:
        return sum(step.startswith("send") for script in found for step in script) / len(found)

    directed = scripts(sends, 30)
    assert mean(directed[15:]) > 1.3 * mean(scripts(None, 30)[15:])


def test_the_same_seed_gives_the_same_examples_with_feedback() -> None:
    assert scripts(answers_seen, 16) == scripts(answers_seen, 16)


def test_answers_that_differ_in_numbers_only_count_once() -> None:
    class Answered:
        def script(self) -> list[str]:
            return ["open", "send m1: SEND_OK at 1", "send m2: SEND_OK at 2", "pull: nothing"]

        def actions(self) -> dict[str, int]:
            return {"Store": 2}

    assert answers_seen(Answered()) == 4  # type: ignore[arg-type]  # three answers, one of them empty


def test_lines_that_run_within_the_block_are_recorded() -> None:
    choice = QueueChoice(0)
    with CodeCoverage() as recorder:
        pass
    assert recorder.reached == {}
    with CodeCoverage() as recorder:
        choice.failed("a", 0.0)
        assert recorder.branches(None) > 0  # type: ignore[arg-type]  # the session is not used
        assert recorder.branches(None) == 0  # type: ignore[arg-type]
    (module,) = recorder.reached
    assert module == MODULE
    assert recorder.reached[MODULE] & statements()[MODULE]


def test_only_targets_in_this_process_are_recorded() -> None:
    for target, wanted in (("remoting://127.0.0.1:9", True), ("impl", False)):
        with recorded(target, wanted=wanted) as recorder:
            assert recorder is None


def test_lines_that_no_suite_executes_are_listed_by_module() -> None:
    everything = dict(statements())
    lines = sorted(everything[MODULE])
    first = Part("producers", (), {}, 0.0, reached=everything | {MODULE: frozenset(lines[:3])})
    second = Part("routing", (), {}, 0.0, reached={MODULE: frozenset(lines[2:-1])})
    tables = {table.title: table for table in scoreboard((first, second), RunOptions("impl")).tables}
    assert tables[WHITE_SPOTS].rows == ((MODULE, str(len(lines)), "1", str(lines[-1])),)
    (executed,) = (table for title, table in tables.items() if "the suites execute" in title)
    assert [row[0] for row in executed.rows] == ["producers", "routing", "all"]
    assert executed.rows[1][1::2] == (str(len(lines) - 3), str(len(lines) - 4))


def test_statements_are_those_in_functions() -> None:
    assert {module.partition("/")[0] for module in statements()} == set(PARTS)
    assert 1 not in statements()[MODULE], "a docstring of a module is no statement"
