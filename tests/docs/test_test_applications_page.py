"""Goal: the examples of docs/how-to/test-applications.md are correct. Method: run them in processes."""

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.console import ROOT

PAGE = (ROOT / "docs" / "how-to" / "test-applications.md").read_text(encoding="utf-8")


def blocks(header: str) -> list[str]:
    return re.findall(rf"^```{re.escape(header)}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def run(*command: str, cwd: Path) -> str:
    ran = subprocess.run(
        [sys.executable, *command], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    for name in ("test_orders.py", "test_failover.py"):
        (text,) = blocks(f'python title="{name}"')
        (tmp_path / name).write_text(text, encoding="utf-8")
    options = ("-p", "mqproof.pytest_plugin", "-p", "no:cacheprovider", "--rootdir", str(tmp_path))
    assert "6 passed" in run("-m", "pytest", "-q", *options, cwd=tmp_path)


def test_the_program_with_virtual_time_runs(tmp_path: Path) -> None:
    (text,) = blocks("python")
    run("-c", text, cwd=tmp_path)
