"""The contract of `mqproof explore`: rows, exit codes, one-line errors, no process left behind."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mqproof.reference import models, mutants
from mqproof.reference.commands.cli import app

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

SMALL = ("--only", "MCFlush_liveness_smoke")


def explore(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explore", *arguments])


def test_explore_of_a_held_model_exits_0_with_its_size_and_the_steps_per_action(tmp_path: Path) -> None:
    result = explore("Flush", *SMALL, "--workers", "2", "--actions", "--json", str(tmp_path / "out.json"))
    assert result.exit_code == 0, result.output
    assert "986 states, 1,741 edges, 15 depth" in result.output
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert {found["verdict"] for found in document["results"]} == {"held"}
    explored, liveness, taken = document["tables"]
    assert [row[2:4] for row in liveness["rows"]] == [
        ["SendAnswered", "held"],
        ["RecoveryEnds", "held"],
        ["AckedDelivered", "held"],
    ]
    assert explored["rows"][0][:6] == ["Flush", "MCFlush_liveness_smoke", "held", "986", "1741", "15"]
    assert int(explored["rows"][0][-1]) > 0, "bytes per state"
    assert sum(int(steps) for *_, steps in taken["rows"]) == 1741


def test_explore_of_a_violated_model_exits_1_and_prints_the_counterexample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(models.MODELS, "Flush", mutants.MUTANTS["AckBeforeFlush"].broken())
    result = explore("Flush", *SMALL)
    assert result.exit_code == 1
    assert "Init -> AppendRecord('m1', 'q0') -> AnswerOk('m1',)" in result.output


def test_explore_of_a_model_that_violates_liveness_exits_1_and_prints_the_infinite_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(models.MODELS, "Transactions", mutants.MUTANTS["LastCheckRepeated"].broken())
    result = explore("Transactions", "--only", "MCTransactions_liveness_smoke")
    assert result.exit_code == 1
    assert "TXN-5 TransactionEnds" in result.output
    assert "then for ever: Advance -> Crash(2, 0) -> Read (for t1)" in " ".join(result.output.split())


def test_a_size_that_differs_from_the_recorded_size_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    without_invariants = replace(mutants.MUTANTS["PoolLostWithProcess"].broken(), invariants={})
    monkeypatch.setitem(models.MODELS, "Flush", without_invariants)
    result = explore("Flush", *SMALL)
    assert result.exit_code == 1
    assert "986 recorded" in result.output


def test_explore_over_the_maximum_number_of_states_exits_3_with_a_one_line_message() -> None:
    result = explore("Flush", *SMALL, "--states-max", "100")
    assert result.exit_code == 3
    assert result.stderr == "mqproof: MCFlush_liveness_smoke: Flush: more than 100 states\n"


@pytest.mark.deep("compiles the loops; the explorer's own tests run them uncompiled in every run")
def test_explore_with_a_bounded_memory_shows_the_probability_of_a_collision(tmp_path: Path) -> None:
    result = explore("Flush", *SMALL, "--memory", "64MiB", "--json", str(tmp_path / "out.json"))
    assert result.exit_code == 0
    tables = json.loads((tmp_path / "out.json").read_text())["tables"]
    (fingerprints,) = (table for table in tables if table["title"] == "Fingerprints")
    assert fingerprints["rows"] == [["Flush", "MCFlush_liveness_smoke", "986", "4.0e-14", "0.0"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Flood",), "no reference model 'Flood'; there are Flush"),
        (("Flush", "--profile", "huge"), "--profile huge: expected one of smoke, mutation, ci, deep"),
        (("Flush", "--only", "MCFlush_gone"), "--only MCFlush_gone: no such bounded model of Flush"),
        (("Flush", "--master", "nonsense"), "--master nonsense: expected a master such as local[2]"),
        (("Flush", "--workers", "2", "--master", "local[2]"), "--workers sets the number of local processes"),
        (
            ("Flush", "--master", "local[2]", "--memory", "1GiB"),
            "--memory bounds an exploration in this process",
        ),
        (("Flush", "--folder", "/tmp"), "--folder is where --memory makes its files; expected with --memory"),
        (("Flush", "--memory", "1GB"), "--memory 1GB: expected a size such as 512MiB or 4GiB"),
        (("Flush", "--memory", "63MiB"), "--memory 63MiB: expected at least 64MiB"),
        (
            ("Flush", "--memory", "1GiB", "--folder", "/absent"),
            "/absent: expected a folder that can be written",
        ),
    ],
)
def test_a_wrong_argument_exits_2_with_a_one_line_message(arguments: tuple[str, ...], message: str) -> None:
    result = explore(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


WHEN = {
    "during the exploration": "",
    # Python discards exceptions raised in this callback, including the one of an interrupt.
    "while a process is forked": (
        "import os; os.register_at_fork(after_in_parent=lambda: signal.raise_signal({how}))"
    ),
}


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupt_ends_all_processes_of_explore(how: signal.Signals, when: str) -> None:
    # Handle SIGINT as in a terminal: tests that run in the background ignore it, like their child processes.
    handle_sigint = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    start = f"{handle_sigint}; {WHEN[when].format(how=int(how))}\nfrom mqproof.cli import main; main()"
    options = ("explore", "Flush", "--only", "MCFlush_messages", "--workers", "2")
    process = subprocess.Popen(
        (sys.executable, "-c", start, *options),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        if not WHEN[when]:
            while len(_of_session(process.pid)) < 3:
                assert process.poll() is None
                time.sleep(0.05)
            process.send_signal(how)
        assert process.wait(30) != 0
    finally:
        process.kill()
        process.wait()
    assert not _of_session(process.pid)


def _of_session(leader: int) -> list[str]:
    done = subprocess.run(
        ["ps", "-o", "pid=", "--sid", f"{leader}"], capture_output=True, text=True, check=False
    )
    return done.stdout.split()
