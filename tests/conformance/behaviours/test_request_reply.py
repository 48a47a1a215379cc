"""Behaviours of RequestReply on our broker and clients: no difference; injected defects differ."""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.mutants import request_reply
from mqproof.conformance.mutants.replacement import injected
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import on_ours, scripts

STATES, STEPS = 144, 472
OF_TWO_REQUESTS = {"correlation-not-compared", "late-reply-given"}
"""Defects that mix up two requests of a client; the bounded model has one."""


@pytest.fixture(scope="module")
def whole() -> list[Script]:
    return scripts("RequestReply")


def test_our_broker_and_clients_follow_the_model_in_every_state_and_step(whole: list[Script]) -> None:
    seen = on_ours("RequestReply", whole)
    assert [failure.why for failure in seen.failures] == []
    assert (len(seen.states), len(seen.steps)) == (STATES, STEPS)
    assert seen.actions.keys() == MODELS["RequestReply"].actions.keys()
    assert not seen.impossible


def test_the_outcomes_of_conditions_are_those_of_the_model() -> None:
    seen = on_ours("RequestReply", behaviours("RequestReply"))
    assert [failure.why for failure in seen.failures] == []
    assert set(+seen.refused) == {"Expire", "Reply"}


@pytest.mark.parametrize("name", sorted(request_reply.MUTANTS.keys() - OF_TWO_REQUESTS))
def test_a_defect_of_the_broker_or_a_client_is_detected(name: str, whole: list[Script]) -> None:
    with injected(request_reply.MUTANTS[name]):
        assert on_ours("RequestReply", whole).failures
