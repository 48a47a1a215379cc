"""Findings that were made once: each file in regressions/ is replayed for ever.

To add one: copy the file that `mqproof fuzz run` saved. While a defect is not repaired its file stands in
OPEN with the reason, and its test says when it is time to take it out.
"""

from pathlib import Path

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.engine import findings
from mqproof.fuzz.engine.execution import judge

FILES = sorted(Path(__file__).with_name("regressions").glob("*.json"))

OPEN: dict[str, str] = {}
"""File name to what is still wrong."""


def case(path: Path) -> object:
    reason = OPEN.get(path.name)
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [case(path) for path in FILES])
def test_a_repaired_finding_does_not_recur(path: Path) -> None:
    saved = findings.load(path)
    assert judge(targets.load(saved.target), saved.input) is None


def test_every_open_finding_has_its_file() -> None:
    assert set(OPEN) <= {path.name for path in FILES}
    assert FILES
