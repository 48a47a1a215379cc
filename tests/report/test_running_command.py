"""Tests the beginning of the lines on standard error: the name of the running command."""

import subprocess
import sys

import pytest

from mqproof.report.running_command import beginning, running


def test_lines_begin_with_the_name_of_the_running_command() -> None:
    assert beginning() == "mqproof"
    with running("check"):
        assert beginning() == "mqproof check"
        assert beginning("bench explore") == "mqproof bench explore"
    assert beginning() == "mqproof"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["check", "--profile", "huge"], "mqproof check: --profile huge: expected one of "),
        (["conform"], "mqproof conform: --target is missing; see mqproof conform --help"),
        (["mutants", "--layer", "nope"], "mqproof mutants: --layer nope: expected one of "),
        (["bench", "explore", "--profile", "huge"], "mqproof bench: --profile huge: expected one of "),
    ],
)
def test_an_error_line_names_the_command_that_was_typed(arguments: list[str], line: str) -> None:
    command = [sys.executable, "-m", "mqproof", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(line)
