"""Tests that a closed pipe is never a violation, and that output that cannot be written is never a success.

Method: run commands as processes with a reader that closes before the first byte.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqproof.standard_streams import CLOSED_PIPE, NOT_WRITTEN

MQPROOF = (sys.executable, "-m", "mqproof")
FULL_DISK = Path("/dev/full")


def run_into_closed_pipe(*arguments: str, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen([*MQPROOF, *arguments], stdout=writing, stderr=stderr, text=True)
    os.close(writing)
    _, reported = process.communicate(timeout=300)
    return process.returncode, reported


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "--version",
        "coverage",
        "coverage --id FLUSH-1",
        "check --help",
        "simulate Flush --depth 3",
        "fuzz list",
        "admin --help",
        "completion bash",
        "conform --target reference --dry-run",
        "fuzz run canary --executions 50 --engine python --findings {tmp}",
    ],
)
def test_a_closed_pipe_ends_a_command_quietly_with_the_code_of_sigpipe(command: str, tmp_path: Path) -> None:
    code, reported = run_into_closed_pipe(*command.format(tmp=tmp_path).split())
    assert code == CLOSED_PIPE
    assert "Traceback" not in reported
    assert "Exception" not in reported
    assert "Broken" not in reported


def test_a_server_whose_output_is_closed_ends_without_a_violation(tmp_path: Path) -> None:
    code, reported = run_into_closed_pipe("namesrv", "--port", "0", "--store", str(tmp_path))
    assert (code, reported) == (CLOSED_PIPE, "")


def test_a_closed_standard_error_does_not_change_the_exit_code() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*MQPROOF, "chek"], stdout=subprocess.PIPE, stderr=writing, timeout=60, check=False)
    os.close(writing)
    assert done.returncode == 2


def test_a_stream_that_was_closed_before_the_start_is_ignored() -> None:
    shell = f"{sys.executable} -m mqproof coverage >&-"
    done = subprocess.run(shell, shell=True, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not FULL_DISK.exists(), reason="the system has no /dev/full")
def test_output_that_cannot_be_written_is_one_line_and_a_failed_tool() -> None:
    with FULL_DISK.open("w") as full:
        done = subprocess.run(
            [*MQPROOF, "coverage"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == NOT_WRITTEN
    assert done.stderr == "mqproof: standard output: No space left on device\n"
