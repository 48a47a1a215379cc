"""`mqproof audit run --spans`: verdicts, exit codes and facts."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mqproof.report.model import Exit
from mqproof.spark_audit.cli import app
from tests.spark_audit.sources.span_lines import exchange, write


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["audit", "run", *map(str, arguments)])


def test_a_loss_in_spans_without_sampling_is_a_violation(tmp_path: Path) -> None:
    file = write(tmp_path / "spans.jsonl", exchange(9, lost={4}))
    done = run("--spans", file, "--sampling", "1", "--subscription", "*:*=*", "--id", "DELIV-1")
    assert done.exit_code == Exit.VIOLATED, done.output
    assert "sent, and not received by group billing: message m4 of topic Orders" in done.stdout
    assert "spans: 17 of messages, 0 without message id, 0 of other systems or operations" in done.stdout
    assert f"replay: mqproof audit run --spans {file} --sampling 1.0" in done.stdout


@pytest.mark.parametrize("rate", ["0", "1.5", "-1"])
def test_a_rate_that_is_none_is_refused(rate: str, tmp_path: Path) -> None:
    done = run("--spans", write(tmp_path / "spans.jsonl", exchange(1)), "--sampling", rate)
    assert done.exit_code == Exit.USAGE
    assert "expected a rate above 0 and up to 1" in done.stderr


def test_a_rate_without_spans_and_events_is_refused(tmp_path: Path) -> None:
    done = run("--store", tmp_path, "--sampling", "0.5")
    assert (done.exit_code, "expected event logs or --spans" in done.stderr) == (Exit.USAGE, True)
