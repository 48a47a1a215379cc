"""A command on a terminal cleans up before it ends on a signal, and shows its progress."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from mqproof.report import console

ENDED_BY_SIGTERM = 143

SCRIPT = """
import os, pathlib, signal, sys
import hypothesis
from hypothesis import strategies as st
from mqproof.report.console import terminable

log = pathlib.Path(sys.argv[1]).open("a")

@hypothesis.seed(0)
@hypothesis.settings(database=None, deadline=None)
@hypothesis.given(st.integers())
def check(number):
    log.write("example\\n")
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        log.write("cleaned up\\n")

with terminable():
    check()
"""


def test_sigterm_ends_a_hypothesis_run_immediately_and_runs_its_cleanup(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(log)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (ENDED_BY_SIGTERM, "")
    assert done.stderr == "mqproof: ended by SIGTERM\n"
    assert log.read_text().splitlines() == ["example", "cleaned up"]


WAITING_SCRIPT = """
import asyncio, os, signal
from mqproof.report.console import terminable

async def connect():
    reading = asyncio.create_task(asyncio.sleep(60))
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
    try:
        await reading
    finally:
        raise OSError("not connected")

with terminable():
    asyncio.run(connect())
"""


def test_sigterm_during_a_wait_prints_a_one_line_message() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAITING_SCRIPT], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (ENDED_BY_SIGTERM, "mqproof: ended by SIGTERM\n")


def test_the_progress_line_counts_seconds_during_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("mqproof.report.console.time.monotonic", lambda: now)
    line = console._Moving("conform", now)
    line.show_stage("wire: 0 of 7")
    now = 109.0
    terminal = Console(width=60)
    with terminal.capture() as drawn:
        terminal.print(line)
    assert drawn.get() == "conform: wire: 0 of 7 (9 s so far)\n"


def test_markup_in_the_name_of_a_stage_is_printed_literally_and_control_characters_are_escaped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with console.stages("audit") as on_stage:
        on_stage("writing :smile: [red]\x1b[2J")
    assert capsys.readouterr().err == "audit: writing :smile: [red]\\x1b[2J\n"
    line = console._Moving("audit", time.monotonic())
    line.show_stage("writing :smile: [red]\x1b[2J")
    terminal = Console(width=60)
    with terminal.capture() as drawn:
        terminal.print(line)
    assert drawn.get() == "audit: writing :smile: [red]\\x1b[2J (0 s so far)\n"
