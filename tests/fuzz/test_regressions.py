"""Replays earlier findings, so that repaired defects do not return: one file in regressions/ for each.

To add a finding, copy the file that `mqproof fuzz run` saved. While its defect is not repaired, the file
needs an entry in OPEN. The test fails once the defect is repaired and the entry is still there.
"""

from pathlib import Path

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.engine import findings
from mqproof.fuzz.engine.execution import judge

FILES = sorted(Path(__file__).with_name("regressions").glob("*.json"))

OPEN: dict[str, str] = {}
"""Maps a file name to the reason why its finding is not repaired yet."""


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
