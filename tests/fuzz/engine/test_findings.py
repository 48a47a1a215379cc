"""Tests finding files: they are complete, one per defect, and validated when read."""

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from mqproof.fuzz.engine import findings
from mqproof.fuzz.engine.findings import FindingFileError, SavedFinding

FINDING = SavedFinding(
    target="canary",
    invariant="CanaryAlive",
    signature="CanaryAlive",
    message="the canary is dead",
    input=b"\x07\x00\x00\x00\x04gas!",
    seed="4/0",
    engine="python",
    executions=4977,
    version="0.1.0",
)


def test_a_saved_finding_is_read_back(tmp_path: Path) -> None:
    path = findings.save(FINDING, tmp_path / "new")
    assert path.name.startswith("canary-")
    assert findings.load(path) == FINDING


def test_a_defect_has_one_file_with_its_smallest_input(tmp_path: Path) -> None:
    path = findings.save(FINDING, tmp_path)
    larger = msgspec.structs.replace(FINDING, input=FINDING.input * 2)
    other = msgspec.structs.replace(FINDING, signature="EndsInTime here")
    assert findings.save(larger, tmp_path) == path
    assert findings.load(path) == FINDING
    assert findings.save(other, tmp_path) != path
    assert len(list(tmp_path.iterdir())) == 2


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    path = findings.save(FINDING, tmp_path)
    path.write_bytes(b"{")
    assert findings.save(FINDING, tmp_path) == path
    assert findings.load(path) == FINDING


@dataclass(frozen=True)
class Bad:
    text: bytes
    message: str


@pytest.mark.parametrize(
    "bad",
    [
        Bad(b"", "not a finding"),
        Bad(b"\xff\xfe", "not a finding"),
        Bad(b"[]", "not a finding"),
        Bad(b"{}", "required field `target`"),
        Bad(msgspec.json.encode(FINDING).replace(b"BwAAAARnYXMh", b"*"), "base64"),
        Bad(msgspec.json.encode(msgspec.structs.replace(FINDING, schema=2)), "schema is 2"),
    ],
)
def test_a_file_that_is_not_a_finding_is_refused(tmp_path: Path, bad: Bad) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(bad.text)
    with pytest.raises(FindingFileError, match=r"bad\.json: .*" + bad.message):
        findings.load(path)


def test_the_line_ends_with_the_replay_command() -> None:
    odd = msgspec.structs.replace(FINDING, message="line\nfeed \x1b[31m")
    line = findings.line(odd, Path("f.json"))
    assert line.endswith("; replay: mqproof fuzz replay f.json")
    assert "\n" not in line
    assert "\x1b" not in line
