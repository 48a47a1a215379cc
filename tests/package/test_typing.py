"""Tests that type checkers see our types: `mypy --strict` of a user's program with the installed wheel."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.package.environments import Environment, clean_variables

pytestmark = pytest.mark.xdist_group("package")

_PROGRAM = """
import asyncio
from collections.abc import Sequence

from mqproof import Message, Producer, PushConsumer, ReceivedMessage, RetryLater, Sent, connect, new_message
from mqproof.client import ConsumeFrom, PushConsumerConfig


async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
    for message in messages:
        print(message.topic, message.body.decode())
    return None


async def main(namesrv: str) -> int:
    message: Message = new_message("Orders", b"one coffee", tag="drink")
    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    async with connect(namesrv) as session, PushConsumer(session, "billing", listener, config) as consumer:
        await consumer.subscribe("Orders")
        outcome = await Producer(session).send(message)
        return outcome.queue_offset if isinstance(outcome, Sent) else -1


asyncio.run(main("127.0.0.1:9876"))
"""

_ERRORS = """
from mqproof import Producer, connect, new_message
from mqproof import Produzer


async def main() -> str:
    async with connect(9876) as session:
        Producer(session).send(new_message("Orders", b"not awaited"))
        outcome = await Producer(session).send("no message")
    return outcome
"""


def _mypy(bare: Environment, program: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        str(bare.python),
        program.name,
    ]
    return subprocess.run(
        command,
        cwd=program.parent,
        env=clean_variables(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_users_program_passes_and_its_type_errors_are_reported(bare: Environment, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    checked = _mypy(bare, program)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    program.write_text(_ERRORS)
    checked = _mypy(bare, program)
    reported = {line.rsplit("[", 1)[1] for line in checked.stdout.splitlines() if "error:" in line}
    assert (checked.returncode, reported) == (
        1,
        {"attr-defined]", "arg-type]", "return-value]", "unused-coroutine]"},
    ), checked.stdout
