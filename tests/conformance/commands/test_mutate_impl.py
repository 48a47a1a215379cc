"""`mqproof mutate-impl` refuses unknown parts and suites, and reports a small campaign."""

import json
from itertools import cycle
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.conformance.commands.mutate_impl import app
from mqproof.conformance.mutation.examiner import Outcome, Verdict
from mqproof.conformance.mutation.fork_server import ForkServer

_RUNNER = CliRunner()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nothing"], "no part 'nothing'; there are broker"), (["--suite", "x"], "--suite x: expected flush")],
)
def test_unknown_names_are_refused(arguments: list[str], message: str) -> None:
    ran = _RUNNER.invoke(app, ["mutate-impl", *arguments])
    assert ran.exit_code == 2
    assert message in ran.stderr


def test_a_folder_without_patches_is_wrong_use(tmp_path: Path) -> None:
    ran = _RUNNER.invoke(app, ["mutate-impl", "--patches", str(tmp_path), "--folder", str(tmp_path)])
    assert ran.exit_code == 2
    assert "no file ends in .patch" in ran.stderr


@pytest.mark.deep("measures what a suite reaches, in another process")
def test_campaign_below_its_goal_exits_with_1_and_lists_survivors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = cycle((Outcome.SURVIVED, Outcome.VIOLATION))

    def judge(*_: object) -> Verdict:
        return Verdict(next(outcomes), "producers")

    monkeypatch.setattr(ForkServer, "judge", judge)
    file = tmp_path / "score.json"
    options = ["--suite", "producers", "--sample", "200", "--examples", "2", "--folder", str(tmp_path)]
    ran = _RUNNER.invoke(app, ["mutate-impl", "client", *options, "--json", str(file)])
    assert ran.exit_code == 1
    (result,) = json.loads(file.read_text(encoding="utf-8"))["results"]
    counts = result["counts"]
    assert counts["mutants"] == counts["violation"] + counts["survived"] + counts["unreached"] > 100
    score = 100 * counts["violation"] // counts["mutants"]
    assert f"{score}% of the mutants that can be shown are detected" in result["detail"]
