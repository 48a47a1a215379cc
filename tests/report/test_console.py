"""What a command does on a terminal beside its report: it ends when it is told to, and cleans up first."""

import subprocess
import sys
from pathlib import Path

ENDED_BY_SIGTERM = 143

SCRIPT = """
import os, pathlib, signal, sys
import hypothesis
from hypothesis import strategies as st
from report.console import terminable

log = pathlib.Path(sys.argv[1]).open("a")

@hypothesis.seed(0)
@hypothesis.settings(database=None, deadline=None)
@hypothesis.given(st.integers())
def examine(number):
    log.write("example\\n")
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        log.write("cleaned up\\n")

with terminable():
    examine()
"""


def test_sigterm_ends_an_examination_at_once_and_unwinds_the_stack(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(log)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (ENDED_BY_SIGTERM, "", "")
    assert log.read_text().splitlines() == ["example", "cleaned up"]
