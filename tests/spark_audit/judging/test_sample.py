"""The rate of loss from a sample: its interval contains the truth, and only a sample is accepted."""

import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqproof.report.model import Exit, Verdict
from mqproof.spark_audit.checks import EVENT_CHECKS
from mqproof.spark_audit.cli import app
from mqproof.spark_audit.judging.sample import LOSS, loss_interval, of_sample
from mqproof.spec.sampling import is_in_sample, sample_limit
from tests.spark_audit.conftest import LogBuilder, embedded_audit, write_ndjson


def ids_of(chance: random.Random, count: int) -> list[str]:
    return [f"7F{chance.getrandbits(64):016X}{number:014X}" for number in range(count)]


def log_of(ids: list[str], lost: set[str], limit: str) -> list[dict[str, Any]]:
    """Return the log of nodes that record a sample."""
    builder = LogBuilder(subscribed=("g",))
    for offset, msg_id in enumerate(ids):
        if is_in_sample(msg_id, limit):
            builder.stored(msg_id, offset)
            if msg_id not in lost:
                builder.deliver(msg_id, offset)
    return builder.rows


@pytest.mark.parametrize(
    ("messages", "rate", "truth"),
    [
        (500, 0.1, 0.03),
        *(
            pytest.param(20_000, 0.01, truth, marks=pytest.mark.deep("20 million hashes"))
            for truth in (0.001, 0.01, 0.2)
        ),
    ],
)
def test_the_interval_contains_the_true_rate_of_99_in_100_logs(
    messages: int, rate: float, truth: float
) -> None:
    chance, limit, covered = random.Random(5), sample_limit(rate), 0
    lost_in_all = round(messages * truth)
    for _ in range(1_000):
        ids = ids_of(chance, messages)
        is_lost = [is_in_sample(each, limit) for each in ids[:lost_in_all]]
        due = sum(is_lost) + sum(is_in_sample(each, limit) for each in ids[lost_in_all:])
        low, high = loss_interval(sum(is_lost), due)
        covered += low <= truth <= high
    assert covered >= 985


def test_an_audit_of_a_sample_reports_its_losses_and_the_rate_of_all(tmp_path: Path) -> None:
    ids, limit = ids_of(random.Random(1), 300), sample_limit(0.25)
    chosen = [each for each in ids if is_in_sample(each, limit)]
    lost, last = set(chosen[5:8]), chosen[-1]
    rows = log_of(ids, {*lost, last}, limit)
    done = embedded_audit(rows, tmp_path, checks={LOSS: EVENT_CHECKS[LOSS]})
    (result,) = of_sample(done.results, done.tallies, done.findings, 0.25)
    low, high = loss_interval(3, len(chosen) - 1)
    assert (result.verdict, result.found) == (Verdict.VIOLATED, 3)
    assert result.detail.endswith(
        "the log has a sample of 25.00% of the messages; "
        f"between {low:.3%} and {high:.3%} of all acknowledged messages are lost (99 %)"
    )


def test_a_sample_without_losses_does_not_show_that_there_are_none(tmp_path: Path) -> None:
    ids, limit = ids_of(random.Random(1), 300), sample_limit(0.25)
    (tmp_path / "log.ndjson").write_bytes(write_ndjson(log_of(ids, set(), limit)))
    arguments = ["audit", "run", str(tmp_path / "log.ndjson"), "--sampling", "0.25"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == Exit.INCONCLUSIVE, done.output
    assert "between 0.000% and" in done.stdout
    assert "DELIV-4" not in done.stdout
    for given, message in (
        (["--sampling", "0.1"], "which is not in that sample"),
        (["--sampling", "0.25", "--id", "DELIV-4"], "a sample of the messages does not suffice"),
        (["--sampling", "0.25", "--state", str(tmp_path / "s")], "without --state"),
        (["--sampling", "0.25", "--store", str(tmp_path)], "cannot be judged with --store"),
    ):
        refused = CliRunner().invoke(app, [*arguments[:3], *given])
        assert (refused.exit_code, message in refused.stderr) == (Exit.USAGE, True), refused.stderr
