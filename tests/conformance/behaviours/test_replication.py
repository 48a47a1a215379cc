"""Behaviours of Replication on our master and slave and their stores; injected defects differ."""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.crash_images.pair_images import expand
from mqproof.conformance.crash_images.store_images import Recovered
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.mutants.replication import MUTANTS, STEPPED
from mqproof.impl.store import recovery
from tests.conformance.behaviours.sampled import on_ours, scripts

EVERY = 25


@pytest.fixture(scope="module")
def sample() -> list[Script]:
    return scripts("Replication", EVERY)


def test_our_master_and_slave_follow_the_model(sample: list[Script]) -> None:
    seen = on_ours("Replication", sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 800
    assert {"SlaveTimeout", "FlushTimeout", "ReceiveAck", "SystemCrash", "MachineLoss"} <= seen.actions.keys()
    assert {"FlushLog", "Deliver", "CorrectOffset", "SlaveTimeout"} <= (+seen.refused).keys()


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
@pytest.mark.timeout(600)
def test_our_code_takes_nearly_every_step_of_the_model() -> None:
    """Counts the reached states and steps.

    The remaining steps start with a slave that requests the first record of the log from its second byte on.
    A master that lost this record refuses the request earlier than the model's.
    """
    seen = on_ours("Replication", scripts("Replication"))
    assert not seen.failures
    assert len(seen.states) >= 3990  # of 4,016
    assert len(seen.steps) >= 12_680  # of 12,734
    assert set(seen.impossible) == {"AcceptReport"}


def test_recovery_from_any_crash_image_has_the_durable_records(sample: list[Script]) -> None:
    found = Recovered()
    for script in sample:
        expand(script, found, every=11)
    assert [failure.why for failure in found.failures] == []
    assert found.edges > 50
    assert found.images > 500


def test_a_disk_image_detects_a_start_that_forgets_queue_entries(
    sample: list[Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "dispatch_again", lambda *_: 0)
    found = Recovered()
    for script in sample:
        expand(script, found, every=40)
    assert found.failures


@pytest.mark.deep("more than 50,000 disk images; a sample is recovered in every run")
@pytest.mark.timeout(900)
def test_every_image_of_every_crash_is_recovered() -> None:
    found = Recovered()
    for script in scripts("Replication", 4):
        expand(script, found)
    assert not found.failures
    assert found.outcomes == found.allowed
    assert found.images > 50_000


@pytest.mark.parametrize(
    "name",
    [
        "no-slave-waited-for",
        "absent-slave-waited-for",
        "replica-status-lost",
        "slave-shows-nothing",
        *STEPPED,
    ],
)
def test_a_defect_of_replication_is_detected(name: str, sample: list[Script]) -> None:
    with injected({**MUTANTS, **STEPPED}[name]):
        assert on_ours("Replication", sample).failures
