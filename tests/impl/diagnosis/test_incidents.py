"""Incidents injected into real brokers, clients and logs are diagnosed with their cause.

One incident of every second kind is played here, and 246 of all kinds in the deep test. A wrong answer is a
defect, and the worst one is a message that is called lost and is not.
"""

from collections import Counter
from pathlib import Path

import pytest

from mqproof.impl.diagnosis.causes import CAUSES, State
from tests.impl.diagnosis.incidents import KINDS, play

SAMPLE = sorted(KINDS.keys() - {"expired"})[::2]
"""Every second kind; an expired message takes as long as ten others."""


@pytest.mark.parametrize("name", SAMPLE)
def test_an_incident_is_diagnosed(name: str, tmp_path: Path) -> None:
    injected, found = play(name, 0, tmp_path)
    assert found == [injected]


def test_the_incidents_have_most_causes() -> None:
    assert len(KINDS) >= 40


@pytest.mark.deep("246 brokers, 10 s; each kind of incident is diagnosed once in every run")
def test_incidents_with_other_details_are_diagnosed(tmp_path: Path) -> None:
    right, wrong, causes = 0, Counter[str](), set()
    for number in range(6):
        for name in KINDS:
            folder = tmp_path / f"{name}-{number}"
            folder.mkdir()
            injected, found = play(name, number, folder)
            causes.add(injected)
            right += found == [injected]
            if found != [injected]:
                wrong[f"{name} {number}: {injected} diagnosed as {found}"] += 1
            states = [CAUSES[each].state for each in found]
            assert State.LOST not in states or CAUSES[injected].state is State.LOST, f"{name}: called lost"
    assert right >= 0.95 * (right + sum(wrong.values())), wrong
    assert right + sum(wrong.values()) >= 200
    assert len(causes) >= 30
