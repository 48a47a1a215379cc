"""The files for continuous integration: SARIF, a badge, and the changes since an earlier run."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.conformance.commands.conform import app
from mqproof.report.model import Exit

RUN = ("--target", "reference", "--suite", "offsets", "--examples", "1", "--id", "DELIV-1")


def conform(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["conform", *RUN, *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_a_first_run_and_the_next_one_are_written_and_compared(tmp_path: Path) -> None:
    old, comment = tmp_path / "old.json", tmp_path / "comment.md"
    files = ("--sarif", str(tmp_path / "r.sarif"), "--badge", str(tmp_path / "b.svg"))
    compared = ("--compare", str(old), "--comment", str(comment))
    code, out, error = conform("--json", str(old), *compared, *files)
    assert code in (Exit.HELD, Exit.INCONCLUSIVE), error
    assert f"{old}: no earlier run to compare with" in out.replace("\n", "")
    assert "No earlier run to compare with." in comment.read_text()
    assert json.loads((tmp_path / "r.sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "b.svg").read_text().startswith("<svg")
    worse = json.loads(old.read_text())
    for result in worse["results"]:
        result["verdict"] = "violated"
    old.write_text(json.dumps(worse))
    code, out, error = conform("--json", str(tmp_path / "new.json"), *compared)
    changes = comment.read_text()
    assert "Comparison of two runs" in changes
    assert "violated" in changes
    assert "Comparison of two runs" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--comment", "{tmp}/c.md"], "--comment needs --compare OLD.json"),
        (["--compare", "{tmp}/no.json"], "--compare"),
        (["--badge", "{tmp}"], "--badge {tmp}: Is a directory"),
    ],
)
def test_wrong_files_are_refused_before_the_run(options: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{}")
    code, out, error = conform(*(each.replace("{tmp}", str(tmp_path)) for each in options))
    assert (code, out) == (Exit.USAGE, "")
    assert message.replace("{tmp}", str(tmp_path)) in error
