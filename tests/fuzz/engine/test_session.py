"""A search in a worker: what it writes about its findings, and the input that it leaves when it dies."""

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
    """A session on the canary, and the descriptor where its messages are read."""
    target = targets.load("canary")
    prepare_current(folder / "current", target.input_bytes_max)
    read, write = os.pipe()
    options = Options("canary", "1", seconds, str(folder / "current"), executions=executions)
    return Session(options, target, write), read


def messages(descriptor: int) -> list[Message]:
    return [msgspec.json.decode(line, type=Message) for line in os.read(descriptor, 1 << 20).splitlines()]


def test_the_input_that_is_executed_can_be_read_by_another_process(tmp_path: Path) -> None:
    run, _ = session(tmp_path)
    run.before(b"abc")
    assert read_current(tmp_path / "current") == b"abc"
    run.before(b"")
    assert read_current(tmp_path / "current") == b""


def test_it_is_over_after_its_executions_or_its_time(tmp_path: Path) -> None:
    run, _ = session(tmp_path, executions=1)
    assert not run.over()
    run.after(b"", None, features=0, inputs=0)
    assert run.over()
    late, _ = session(tmp_path, seconds=0)
    assert late.over()


def test_a_defect_is_reported_once_first_as_found_and_then_minimised(tmp_path: Path) -> None:
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


def test_progress_tells_how_many_were_executed(tmp_path: Path) -> None:
    run, read = session(tmp_path)
    run.after(b"", None, features=2, inputs=3)
    (progress,) = messages(read)
    assert isinstance(progress, Progress)
    assert (progress.executions, progress.features, progress.inputs) == (1, 2, 3)
