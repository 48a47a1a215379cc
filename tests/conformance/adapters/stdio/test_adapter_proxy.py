"""The protocols of the suites over standard input and output, around the reference: every suite agrees."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.conformance.adapters.stdio.adapter_proxy import constants_of
from mqproof.conformance.commands.conform import app
from mqproof.conformance.suites.delivery.target import DeliveryTarget
from mqproof.report import json_file
from mqproof.report.model import Exit, Verdict

TARGET = f"stdio:{sys.executable} -m tests.conformance.adapters.stdio.served_reference"


def conform(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["conform", *arguments])
    return done.exit_code, done.stderr


OTHERS = ("offsets", "delivery", "retry", "timers")
DEEP = pytest.mark.deep("each costs seconds, and differs in its values only")


@pytest.mark.parametrize("suite", ["flush", *(pytest.param(each, marks=DEEP) for each in OTHERS)])
def test_a_suite_holds_on_a_served_reference(suite: str, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    code, error = conform("--target", TARGET, "--suite", suite, "--examples", "3", "--json", str(file))
    assert code in (Exit.HELD, Exit.INCONCLUSIVE), error  # few examples may observe too little
    verdicts = {one.verdict for one in json_file.from_json(file.read_text()).results}
    assert Verdict.HELD in verdicts
    assert Verdict.VIOLATED not in verdicts


@pytest.mark.deep("one process for each of nine suites")
def test_the_checklist_holds_for_all_suites_of_a_served_reference() -> None:
    code, error = conform("check-adapter", TARGET)
    assert code == Exit.HELD, error


def test_the_adapter_gets_the_constants_of_the_suite() -> None:
    constants = constants_of(DeliveryTarget)
    assert constants == {"QUEUES": 3, "MEMBERS": ["c1", "c2", "c3", "c4"]}


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ("end 5", Exit.TOOL, "with exit code 7; it wrote: out of coffee"),
        ("wrong-type 5", Exit.TOOL, "is 'seven'"),
        ("wrong-type 1", Exit.TOOL, "answers hello with 'seven'"),
        ("unknown-kind 5", Exit.TOOL, "error of kind 'x', expected target, restart_failed"),
        ("target-error 5", Exit.TOOL, "the broker is gone"),
    ],
)
def test_a_broken_adapter_is_a_failure_of_a_tool(arguments: str, exit_code: int, message: str) -> None:
    code, error = conform("--target", f"{TARGET} {arguments}", "--suite", "offsets", "--examples", "1")
    assert code == exit_code, error
    assert message in error


@pytest.mark.deep("two suites, each with a process of its own")
def test_a_failed_adapter_ends_the_command_with_4_even_if_other_suites_were_judged(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    suites = ("--suite", "flush", "--suite", "offsets", "--examples", "1", "--json", str(file))
    code, error = conform("--target", f"{TARGET} end 12", *suites)
    assert (code, file.exists()) == (Exit.TOOL, True), error


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("stdio:", "stdio:COMMAND expected"),
        ("stdio:'x", "No closing quotation"),
        ("stdio:/no/such/program", "/no/such/program: No such file or directory"),
    ],
)
def test_a_command_that_cannot_run_is_wrong_use(target: str, message: str) -> None:
    code, error = conform("--target", target, "--suite", "offsets")
    assert (code, message in error) == (Exit.USAGE, True), error
    code, error = conform("check-adapter", target)
    assert (code, message in error) == (Exit.USAGE, True), error


def test_a_suite_that_the_adapter_does_not_support_is_wrong_use_if_it_is_named() -> None:
    code, error = conform("--target", TARGET, "--suite", "routing", "--examples", "1")
    assert (code, "does not support the suite routing: not built yet" in error) == (Exit.USAGE, True), error
