"""Behaviours of Routing on our name servers and client: any difference counts, and planted defects differ."""

import itertools

import pytest

from conformance.behaviours.corpus import Script, file_of, read, read_lines
from conformance.behaviours.replay import Replayed, replay
from conformance.behaviours.target import resolve
from conformance.planting import planted
from conformance.targets.routing.mutants import MUTANTS
from reference.models import MODELS

EVERY = 10


def scripts(every: int = EVERY) -> list[Script]:
    return list(itertools.islice(read(read_lines(file_of("Routing")), "Routing"), 0, None, every))


def on_ours(chosen: list[Script]) -> Replayed:
    make = resolve("impl", "Routing")
    assert make is not None
    return replay(make, chosen, failures_max=1)


@pytest.fixture(scope="module")
def sample() -> list[Script]:
    return scripts()


def test_our_name_servers_and_client_do_what_the_model_does(sample: list[Script]) -> None:
    seen = on_ours(sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 1000
    # In the smoke model every broker has the topic from the start.
    assert set(MODELS["Routing"].actions) - set(seen.actions) == {"AutoCreate"}
    assert (+seen.refused).keys() == {"Scan", "WipeWrite"}
    assert set(seen.impossible) <= {"Poll"}


@pytest.mark.deep
def test_they_take_nearly_every_step_of_the_model() -> None:
    """What is left begins with a poll over a connection that a name server's restart has closed."""
    seen = on_ours(scripts(1))
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
def test_a_defect_of_the_name_server_is_seen(name: str, sample: list[Script]) -> None:
    with planted(MUTANTS[name]):
        assert on_ours(sample).failures
