"""Tests that -v, -q, --log-level and --log-file mean the same for every server and long command."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from mqproof.log_options import configure
from mqproof.report.console import is_quiet

MQPROOF = (sys.executable, "-m", "mqproof")


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("mqproof")
    before = (root.level, ours.level)
    yield
    root.setLevel(before[0])
    ours.setLevel(before[1])
    for handler in [each for each in root.handlers if each.name == "mqproof"]:
        root.removeHandler(handler)
        handler.close()


@pytest.mark.parametrize(
    ("verbose", "quiet", "level", "expected"),
    [
        (0, False, None, logging.WARNING),
        (1, False, None, logging.INFO),
        (2, False, None, logging.DEBUG),
        (5, False, None, logging.DEBUG),
        (0, True, None, logging.ERROR),
        (0, False, "Info", logging.INFO),
        (0, False, "critical", logging.CRITICAL),
    ],
)
def test_options_select_the_log_level(verbose: int, quiet: bool, level: str | None, expected: int) -> None:
    configure(verbose, quiet, level, None)
    assert logging.getLogger("mqproof").getEffectiveLevel() == expected
    assert is_quiet() == (expected > logging.WARNING)
    # Libraries' loggers never become more verbose.
    assert logging.getLogger("py4j").getEffectiveLevel() >= logging.WARNING


@pytest.mark.parametrize(
    ("verbose", "quiet", "level", "message"),
    [
        (1, True, None, "give one of -v and -q"),
        (0, True, "info", "give one of -q and --log-level"),
        (0, False, "loud", "--log-level loud: expected one of debug, info"),
    ],
)
def test_contradictions_and_unknown_levels_are_refused(
    verbose: int, quiet: bool, level: str | None, message: str
) -> None:
    with pytest.raises(typer.BadParameter, match=message):
        configure(verbose, quiet, level, None)


def test_a_log_file_is_appended_to_and_replaced_by_the_next_call(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text("before\n", encoding="utf-8")
    configure(1, False, None, file)
    logging.getLogger("mqproof.impl").info("started")
    configure(1, False, None, tmp_path / "b.log")
    logging.getLogger("mqproof.impl").info("again")
    first, second = file.read_text(encoding="utf-8").splitlines()
    assert first == "before"
    assert second.endswith("INFO mqproof.impl: started")
    assert (tmp_path / "b.log").read_text(encoding="utf-8").endswith("INFO mqproof.impl: again\n")


@pytest.mark.parametrize("command", ["namesrv", "broker", "serve", "check", "conform", "audit watch"])
def test_a_log_file_that_cannot_be_opened_is_reported_in_one_line(command: str, tmp_path: Path) -> None:
    options = ["--log-file", str(tmp_path)]
    options += ["--state", str(tmp_path)] if command == "audit watch" else []
    done = subprocess.run(
        [*MQPROOF, *command.split(), *options], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2
    hint = f"see mqproof {command} --help"
    assert done.stderr == f"mqproof {command}: --log-file {tmp_path}: Is a directory; {hint}\n"


def test_a_server_writes_its_log_to_the_file(tmp_path: Path) -> None:
    log = tmp_path / "namesrv.log"
    command = [*MQPROOF, "namesrv", "--port", "0", "--store", str(tmp_path), "-v", "--log-file", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready namesrv=")
        process.terminate()
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, errors) == (0, "")
    lines = log.read_text(encoding="utf-8").splitlines()
    assert "INFO mqproof.impl.runtime.serving: namesrv listens on 127.0.0.1:" in lines[0]
    assert lines[-1].endswith("INFO mqproof.impl.runtime.serving: stopped")


def test_quiet_hides_the_progress() -> None:
    command = [*MQPROOF, "conform", "--target", "reference", "--suite", "flush", "--examples", "2"]
    for option, shown in (((), True), (("-q",), False)):
        done = subprocess.run([*command, *option], capture_output=True, text=True, timeout=120, check=False)
        assert ("conform reference: flush" in done.stderr) == shown
        assert "Conformance of reference" in done.stdout
