"""The composite action: its inputs are variables only, and its step runs suites and writes files."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}


def test_no_input_is_part_of_a_script() -> None:
    for step in STEPS.values():
        assert "${{" not in step["run"]
        assert set(step["env"]) <= {"PYTHON", "TARGET", "SUITES", "EXAMPLES", "FOLDER", "COMPARE"}
    used = {value for step in STEPS.values() for value in step["env"].values()}
    assert used == {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}


def test_the_step_writes_all_files_and_its_exit_code(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "mqproof"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mqproof "$@"\n')
    program.chmod(0o755)
    output, summary = tmp_path / "output", tmp_path / "summary"
    environment = {
        **os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "TARGET": "reference", "COMPARE": "",
        "SUITES": "offsets delivery", "EXAMPLES": "1", "FOLDER": str(tmp_path / "a folder"),
        "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary),
    }  # fmt: skip
    ran = subprocess.run(
        ["bash", "-e", "-c", STEPS["conform"]["run"]], cwd=tmp_path, env=environment, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode in (0, 3), ran.stdout + ran.stderr  # one example may observe too little
    assert output.read_text() == f"exit-code={ran.returncode}\n"
    names = ["badge.svg", "comment.md", "conform.sarif", "conform.xml", "run.json"]
    assert sorted(path.name for path in (tmp_path / "a folder").iterdir()) == names
    assert "No earlier run to compare with." in summary.read_text()
