"""The examples of tests in other languages pass, with Apache's own clients and a broker in memory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, program
from tests.docs.console import ROOT

pytestmark = pytest.mark.apache

SECONDS_MAX = 600


@pytest.fixture
def mqproof(tmp_path: Path) -> Path:
    """Return a program that runs this mqproof."""
    script = tmp_path / "mqproof"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m mqproof "$@"\n')
    script.chmod(0o755)
    return script


def run(example: str, folder: Path, mqproof: Path, *command: str) -> str:
    """Run the command in a copy of the example, and return what it printed."""
    copied = shutil.copytree(ROOT / "examples" / example, folder / example)
    try:
        path = program(command[0], f"install {command[0]}")
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")
    done = subprocess.run(
        [path, *command[1:]],
        cwd=copied,
        env={**os.environ, "MQPROOF": str(mqproof)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def test_the_example_for_junit_passes(tmp_path: Path, mqproof: Path) -> None:
    printed = run("junit", tmp_path, mqproof, "mvn", "-B", "test")
    assert "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0" in printed


def test_the_example_for_go_passes(tmp_path: Path, mqproof: Path) -> None:
    printed = run("go_testing", tmp_path, mqproof, "go", "test", "-count=1", "-v", "./...")
    assert printed.count("--- PASS: Test") == 3
