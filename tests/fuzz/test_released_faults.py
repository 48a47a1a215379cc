"""Tests the campaign of single faults on released brokers; by default without Java, on given observations."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from mqproof.conformance.adapters.apache.artifacts import releases
from mqproof.conformance.damage.cases import Case, Moment
from mqproof.conformance.damage.damage_run import Observed
from mqproof.conformance.damage.observation import Record, Seen, Stored
from mqproof.fuzz.cli import app
from mqproof.fuzz.fault_campaign import point
from mqproof.fuzz.released_faults import ReleasedCampaign
from mqproof.fuzz.store.damaged_files import StoreDirectory
from mqproof.fuzz.store.single_fault import Fault, Point, inject
from mqproof.fuzz.store.single_fault import Moment as PointMoment

LOG = "commitlog/00000000000000000000"
TRUTH = Stored("T", Record(b"record", 0, 3, 700, b"body", "T"))


def _write(folder: Path, path: str, data: bytes) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data)


def _store(folder: Path) -> StoreDirectory:
    """Write a store of four files, one of them a lock, with an earlier content of the log."""
    now, older = folder / "now", folder / "older"
    _write(now, LOG, (b"a" * 200).ljust(4096, b"\0"))
    _write(now, "consumequeue/T/0/00000000000000000000", b"e" * 40)
    _write(now, "config/t.json", b"{}")
    _write(now, "lock", b"")
    _write(older, LOG, (b"a" * 100).ljust(4096, b"\0"))
    return StoreDirectory(now, older)


def test_each_type_of_file_is_as_frequent_as_any_other(tmp_path: Path) -> None:
    store = _store(tmp_path)
    _write(tmp_path / "now", "config/t.json.bak", b"{}")
    paths = store.paths()
    assert len(paths) == 6
    assert paths.count(LOG) == 2
    assert "lock" not in paths


def test_a_file_has_blocks_as_far_as_it_was_written(tmp_path: Path) -> None:
    store = _store(tmp_path)
    assert len(store.content(LOG)) == 256
    assert len(store.before[LOG]) == 256, "the part that was written later is zero"


@pytest.mark.parametrize("fault", Fault)
def test_each_fault_alters_at_most_the_files_of_one_folder(tmp_path: Path, fault: Fault) -> None:
    store = _store(tmp_path)
    files = [path for path in (tmp_path / "now").rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    hit = inject(Point(PointMoment.CLOSED, 0, 2, fault, 12345), store)
    after = {path: path.read_bytes() if path.exists() else None for path in files}
    changed = {path.parent for path in files if before[path] != after[path]}
    assert changed <= {(tmp_path / "now" / hit).parent}
    if fault in (Fault.BIT_FLIP, Fault.GARBAGE, Fault.FILE_MISSING):
        assert changed


def _observed(**fields: object) -> Observed:
    case = Case("00", "bit flip", lambda _: None)
    return Observed(case, Moment.STOPPED, Seen((TRUTH,), files=("checkpoint",), **fields))  # type: ignore[arg-type]


def test_points_are_counted_by_their_verdict_and_invariant() -> None:
    campaign = ReleasedCampaign("4.9.5", 1, 1.0, lambda _: None)
    campaign._add(point(1, 0), LOG, _observed(passed={("T", 3)}, report=""))
    campaign._add(point(1, 3), LOG, _observed(report=""))
    campaign._add(point(1, 6), "checkpoint", _observed(refusal="cannot read checkpoint"))
    campaign._add(point(1, 9), "checkpoint", _observed(refusal="java.net.BindException: in use"))
    campaign._add(point(1, 9), "checkpoint", None)
    assert campaign.unjudged == 2
    assert campaign.tally.points == 3
    assert [name for name, *_ in campaign.tally.findings] == ["NeverSilentlyLost"]
    assert campaign.tally.checked["NeverSilentlyLost"] == 1
    assert campaign.tally.checked["RefusedByName"] == 1


@pytest.mark.parametrize(("again", "is_judged"), [("the same", True), ("sound", False), ("nothing", False)])
def test_a_violation_counts_only_if_it_is_seen_twice(
    monkeypatch: pytest.MonkeyPatch, again: str, is_judged: bool
) -> None:
    lost = _observed(passed={("T", 3)}, report="")
    second = {"the same": (LOG, lost), "sound": (LOG, _observed(report="")), "nothing": (LOG, None)}[again]
    answers = iter([(LOG, lost), second])
    monkeypatch.setattr(ReleasedCampaign, "_observe_once", lambda *_: next(answers))
    campaign = ReleasedCampaign("4.9.5", 1, 1.0, lambda _: None)
    running = SimpleNamespace(is_alive=True)
    seen = campaign._observe(running, None, time.monotonic() + 60, (0, point(1, 0)))  # type: ignore[arg-type]
    assert seen == (LOG, lost if is_judged else None)


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(SystemExit) as ended:
        app(["fuzz", "faults", "--target", "apache:3", "--points", "1"])
    assert ended.value.code == 2


@pytest.mark.apache
@pytest.mark.timeout(900)
@pytest.mark.parametrize("release", releases())
def test_a_sample_of_points_is_judged_on_a_release(release: str) -> None:
    """The table with many points is docs/reference/conformance/faults.md."""
    points = [point(1, number) for number in range(8)]
    campaign = ReleasedCampaign(release, 4, 600, lambda _: None)
    tally = campaign.run(points)
    assert tally.points + campaign.unjudged == len(points)
    assert tally.points >= len(points) - 2
