"""Behaviours of Election on our Raft cores: every step of the smoke model; injected defects differ."""

import pytest

from mqproof.conformance.behaviours.corpus import bounded
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.crash_images.member_images import expand
from mqproof.conformance.crash_images.store_images import Recovered
from mqproof.conformance.mutants.dledger import MUTANTS
from mqproof.conformance.registry import mutant_judge
from mqproof.impl.dledger import ballot_file
from mqproof.impl.dledger.ledger import Flush
from mqproof.impl.runtime.disk import Disk
from mqproof.report.model import Verdict
from tests.conformance.behaviours.sampled import on_ours, scripts

STATES, STEPS = 994, 3254


def test_our_members_follow_the_model() -> None:
    seen = on_ours("Election", scripts("Election", 4))
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > STEPS // 3
    assert len(seen.actions) == 8
    assert {"HandleVote", "HandlePush", "HandleHeartBeat", "AdvanceCommit"} <= (+seen.refused).keys()


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
def test_our_members_take_every_step_of_the_model() -> None:
    seen = on_ours("Election", scripts("Election"))
    assert (len(seen.failures), len(seen.impossible)) == (0, 0)
    assert (len(seen.states), len(seen.steps)) == (STATES, STEPS)


def expanded() -> Recovered:
    """Return the recoveries from all crash images of the behaviours that test a condition after a crash."""
    found = Recovered()
    for script in behaviours("Election"):
        expand(script, bounded("Election", script.configuration).nodes, found)
    return found


def test_recovery_from_any_crash_image_has_the_ballot_and_the_durable_entries() -> None:
    found = expanded()
    assert [failure.why for failure in found.failures] == []
    assert found.outcomes == found.allowed > found.edges > 10
    assert found.images > 3000


def test_a_disk_image_detects_a_ballot_that_is_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ballot_file, "write_durably", _replaced_without_a_sync)
    whys = [failure.why for failure in expanded().failures]
    assert any("a start recovers None" in why or "currTerm is ''" in why for why in whys)


def test_a_disk_image_detects_a_ledger_that_is_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flush, "sync", lambda _: None)
    assert "recovery reaches 0, which the model does not allow" in expanded().failures[0].why


def _replaced_without_a_sync(disk: Disk, path: str, data: bytes) -> None:
    """Replace the file without a sync, as released members do."""
    if disk.exists(path):
        disk.remove(path)
    file = disk.create(path, len(data))
    file.write(0, data)
    file.close()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_defect_of_a_member_is_detected(name: str) -> None:
    (result,) = mutant_judge.run([name])
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed in {result.counts}"
