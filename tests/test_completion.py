"""Tests that `mqproof completion SHELL` prints a script that the shell accepts."""

import shutil
import subprocess
import sys

import pytest

MQPROOF = (sys.executable, "-m", "mqproof")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_the_command_and_the_shell_accepts_it(shell: str) -> None:
    command = [*MQPROOF, "completion", shell]
    script = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "_MQPROOF_COMPLETE=complete_" + shell in script
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=script, text=True, timeout=60, check=True)


def test_an_unknown_shell_is_wrong_use() -> None:
    command = [*MQPROOF, "completion", "tcsh"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "mqproof completion: invalid value for 'shell': 'tcsh' is not one of 'bash', 'zsh', 'fish'; "
    )
