"""`mqproof conform diff`: the results that got worse between two runs."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.conformance.commands.conform import app
from mqproof.conformance.engine.comparison import compare
from mqproof.report import json_file
from mqproof.report.model import Exit, Report, Result, Table, Verdict, exit_code

HELD, VIOLATED, UNKNOWN, NOT_TESTED = Verdict


def run(examples: int = 10, **verdicts: Verdict) -> Report:
    results = tuple(
        Result(name, f"Name{name}", "flush", verdict, {"examples": examples})
        for name, verdict in verdicts.items()
    )
    evidence = Table("Evidence", ("suite", "examples", "seconds"), (("flush", str(examples), "1.0"),))
    return Report("Conformance of x", results, {"target": "x", "seed": "0"}, (evidence,))


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (run(A=HELD), run(A=HELD), Exit.HELD),
        (run(A=HELD), run(A=VIOLATED), Exit.VIOLATED),
        (run(A=HELD), run(A=UNKNOWN), Exit.INCONCLUSIVE),
        (run(A=HELD), run(A=NOT_TESTED), Exit.INCONCLUSIVE),
        (run(A=HELD, B=HELD), run(A=HELD), Exit.INCONCLUSIVE),
        (run(A=HELD, B=HELD), run(A=UNKNOWN, B=VIOLATED), Exit.VIOLATED),
        (run(A=HELD), run(A=HELD, B=VIOLATED), Exit.VIOLATED),
        (run(A=NOT_TESTED), run(A=VIOLATED), Exit.VIOLATED),
        (run(A=VIOLATED), run(A=VIOLATED), Exit.HELD),
        (run(A=VIOLATED), run(A=HELD), Exit.HELD),
        (run(A=VIOLATED), run(A=UNKNOWN), Exit.HELD),
        (run(A=HELD), run(A=HELD, B=HELD), Exit.HELD),
        (run(), run(), Exit.INCONCLUSIVE),
    ],
)
def test_the_comparison_fails_if_a_result_got_worse(before: Report, after: Report, code: int) -> None:
    assert exit_code(compare(before, after).results) == code


def test_changes_and_evidence_are_shown_side_by_side() -> None:
    compared = compare(run(10, A=HELD, B=UNKNOWN, C=HELD), run(1000, A=VIOLATED, B=HELD, C=HELD))
    changes, evidence = compared.tables
    assert changes.rows == (
        ("flush", "A NameA", "held", "violated"), ("flush", "B NameB", "unknown", "held"),
    )  # fmt: skip
    assert evidence.rows == (("flush", "examples", "10", "1000"),)
    assert [(one.id, one.verdict) for one in compared.results] == [
        ("A", VIOLATED), ("B", HELD), ("same", HELD),
    ]  # fmt: skip


def test_the_command_reads_the_output_of_json(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.json", "b.json", "diff.md")]
    files[0].write_text(json_file.render(run(A=HELD)))
    files[1].write_text(json_file.render(run(A=VIOLATED)))
    done = CliRunner().invoke(
        app, ["conform", "diff", str(files[0]), str(files[1]), "--report", str(files[2])]
    )
    assert done.exit_code == Exit.VIOLATED
    assert "held before, violated after" in done.stdout
    assert "held before, violated after" in files[2].read_text()


@pytest.mark.parametrize("text", [None, "nonsense", "{}"])
def test_a_file_that_is_not_a_run_gives_a_one_line_error(text: str | None, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json_file.render(run(A=HELD)))
    if text is not None:
        bad.write_text(text)
    done = CliRunner().invoke(app, ["conform", "diff", str(good), str(bad)])
    assert (done.exit_code, done.stderr.count("\n")) == (Exit.USAGE, 1)
    assert str(bad) in done.stderr
