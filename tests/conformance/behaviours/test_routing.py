"""Behaviours of Routing on our name servers and client: no difference, and injected defects cause one."""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.mutants.routing import MUTANTS
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import on_ours, scripts

EVERY = 10


@pytest.fixture(scope="module")
def sample() -> list[Script]:
    return scripts("Routing", EVERY)


def test_our_name_servers_and_client_follow_the_model(sample: list[Script]) -> None:
    seen = on_ours("Routing", sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 1000
    # In the smoke model every broker has the topic from the start.
    assert set(MODELS["Routing"].actions) - set(seen.actions) == {"AutoCreate"}
    assert (+seen.refused).keys() == {"Scan", "WipeWrite"}
    assert set(seen.impossible) <= {"Poll"}


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
def test_our_code_takes_nearly_every_step_of_the_model() -> None:
    """The remaining steps start with a poll over a connection that a name server's restart closed."""
    seen = on_ours("Routing", scripts("Routing"))
    assert not seen.failures
    assert len(seen.states) >= 2540  # of 2,590
    assert len(seen.steps) >= 6940  # of 7,088


@pytest.mark.parametrize(
    "name",
    [
        "hang-up-unheard",
        "only-live-record-removed",
        "expired-too-early",
        "unchanged-not-refreshed",
        "nothing-expires",
        "wipe-undone",
    ],
)
def test_a_defect_of_the_name_server_is_detected(name: str, sample: list[Script]) -> None:
    with injected(MUTANTS[name]):
        assert on_ours("Routing", sample).failures
