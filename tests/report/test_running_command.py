"""Tests the beginning of the lines on standard error: the running command, with its subcommand."""

import sys

import pytest

from mqproof import cli
from mqproof.report.running_command import beginning, running


def test_lines_begin_with_the_name_of_the_running_command() -> None:
    assert beginning() == "mqproof"
    with running("mqproof audit run"):
        assert beginning() == "mqproof audit run"
    assert beginning() == "mqproof"


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("check", "--profile huge", "--profile huge: expected one of "),
        ("conform", "", "--target is missing; see mqproof conform --help"),
        ("mutants", "--layer nope", "--layer nope: expected one of "),
        ("bench explore", "--profile huge", "--profile huge: expected one of "),
        ("fuzz run", "nope", "no fuzz target 'nope', expected one of "),
        ("store verify", "/nowhere", "/nowhere: "),
        ("send", "--namesrv h:1 --topic T", "give either --body TEXT or --size BYTES"),
        ("admin topicStatus", "-n h:1 -t \udcff", "-t: "),
        ("admin brokerStatus", "-n h:1", "give either -b HOST:PORT or -c CLUSTER"),
        ("audit run", "--format x", "no such option: --format"),
        ("audit generate", "--count 9 --out x --format x", "--format: "),
    ],
)
def test_an_error_line_names_the_command_that_was_typed(
    command: str,
    options: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["mqproof", *command.split(), *options.split()])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"mqproof {command}: {message}")
