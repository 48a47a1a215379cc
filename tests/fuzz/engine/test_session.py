"""Tests the search in a worker: its reports of findings, and the input that remains when it dies."""

import os
from pathlib import Path

import msgspec

from mqproof.fuzz import targets
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.engine.session import (
    Found,
    Message,
    Options,
    Progress,
    Session,
    prepare_current,
    read_current,
)

KILLS = b"\x01\x00\x00\x00\x05hello\x07\x00\x00\x00\x04gas!"
"""Two records. The second one, of kind 7, kills the canary."""


def session(folder: Path, *, executions: int | None = None, seconds: float = 60) -> tuple[Session, int]:
    """Return a session with the canary, and the descriptor from which its messages are read."""
    target = targets.load("canary")
    prepare_current(folder / "current", target.input_bytes_max)
    read, write = os.pipe()
    options = Options("canary", "1", seconds, str(folder / "current"), executions=executions)
    return Session(options, target, write), read


def messages(descriptor: int) -> list[Message]:
    return [msgspec.json.decode(line, type=Message) for line in os.read(descriptor, 1 << 20).splitlines()]


def test_another_process_can_read_the_input_being_executed(tmp_path: Path) -> None:
    run, _ = session(tmp_path)
    run.before(b"abc")
    assert read_current(tmp_path / "current") == b"abc"
    run.before(b"")
    assert read_current(tmp_path / "current") == b""


def test_a_session_ends_after_its_executions_or_its_time(tmp_path: Path) -> None:
    run, _ = session(tmp_path, executions=1)
    assert not run.over()
    run.after(b"", None, features=0, inputs=0)
    assert run.over()
    late, _ = session(tmp_path, seconds=0)
    assert late.over()


def test_a_defect_is_reported_first_as_found_and_then_minimised(tmp_path: Path) -> None:
    run, read = session(tmp_path)
    failure = judge(run.target, KILLS)
    for _ in range(2):
        run.before(KILLS)
        run.after(KILLS, failure, features=1, inputs=1)
    found = [message for message in messages(read) if isinstance(message, Found)]
    assert [message.invariant for message in found] == ["CanaryAlive", "CanaryAlive"]
    first, small = found
    assert first.input == KILLS
    assert small.input == b"\x07\x00\x00\x00\x04gas!"


def test_progress_reports_the_number_of_executions(tmp_path: Path) -> None:
    run, read = session(tmp_path)
    run.after(b"", None, features=2, inputs=3)
    (progress,) = messages(read)
    assert isinstance(progress, Progress)
    assert (progress.executions, progress.features, progress.inputs) == (1, 2, 3)
