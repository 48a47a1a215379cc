"""Behaviours on the reference and on our store: defects are found, and disabled actions are refused."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mqproof.conformance.behaviours.corpus import Script, configuration, file_of, read, read_lines
from mqproof.conformance.behaviours.cover import Steps, graph
from mqproof.conformance.behaviours.drawing import draw
from mqproof.conformance.behaviours.replay import Replayed, replay
from mqproof.conformance.crash_images.store_images import Recovered, States, expand
from mqproof.conformance.subjects.stepped.model_targets import resolve
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.store import recovery
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import PutStatus
from mqproof.reference.constants import constants
from mqproof.reference.models import MODELS

EVERY = 40


def _scripts(model: str, every: int = EVERY) -> list[Script]:
    return list(itertools.islice(read(read_lines(file_of(model)), model), 0, None, every))


@pytest.fixture(scope="module")
def flush() -> list[Script]:
    return _scripts("Flush")


def _on_store(scripts: list[Script]) -> Replayed:
    make = resolve("impl", "Flush")
    assert make is not None
    return replay(make, scripts, failures_max=1)


@pytest.mark.parametrize(
    "model",
    [
        *("Flush", "Routing", "Replication", "Election", "Delivery", "Guarantee", "Transactions", "Timers"),
        *("Retry", "Rebalance", "Selection", "Broadcast"),
    ],
)
def test_the_reference_takes_every_step_and_refuses_disabled_actions(model: str) -> None:
    make = resolve("reference", model)
    assert make is not None
    seen = replay(make, _scripts(model, 100))
    assert not seen.failures
    assert not seen.impossible
    assert sum(seen.refused.values()) > 0


def test_our_store_follows_the_model(flush: list[Script]) -> None:
    seen = _on_store(flush)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 1000
    assert {"AnswerTimeout", "Shutdown", "OsCrash", "PowerLoss", "Redispatch"} <= seen.actions.keys()
    assert {"Dispatch", "AnswerOk", "AnswerTimeout", "Deliver", "Start"} <= (+seen.refused).keys()
    assert set(seen.impossible) <= {"FlushQueues"}


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
@pytest.mark.timeout(600)
def test_our_store_takes_nearly_every_step_of_the_model() -> None:
    seen = _on_store(_scripts("Flush", 1))
    assert not seen.failures
    assert (
        len(seen.steps) >= 33_700
    )  # of 36,127: the others need a flush that began before the process started
    # Under SYNC_FLUSH no reader is ever beyond the end of a queue.
    assert set(MODELS["Flush"].actions) - set(seen.actions) == {"CorrectOffset"}


async def _always_ok(*_: Any) -> PutStatus:
    return PutStatus.PUT_OK


async def _never_persisted(_: OffsetTable) -> None:
    pass


def _nothing_cut(*_: Any) -> int:
    return 0


def _never_clean(_: MessageStore) -> None:
    pass


DEFECTS: dict[str, tuple[object, str, object]] = {
    "answers before the fsync": (MessageStore, "settle", _always_ok),
    "dispatches what is not durable": (MessageStore, "confirm_offset", lambda store: store._log.end),
    "forgets to persist offsets": (OffsetTable, "persist", _never_persisted),
    "keeps entries that point nowhere": (recovery, "cut_queue", _nothing_cut),
    "does not dispatch again": (recovery, "dispatch_again", _nothing_cut),
    "leaves the abort file": (MessageStore, "_mark_clean", _never_clean),
}
NOT_IN_REACH = {"keeps entries that point nowhere"}
"""Defects without effect: under SYNC_FLUSH, as in the smoke model, no queue entry is ahead of the log."""


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_the_store_is_detected(
    name: str, flush: list[Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, attribute, wrong = DEFECTS[name]
    monkeypatch.setattr(owner, attribute, wrong)
    failed = False
    try:
        failed = bool(_on_store(flush).failures)
    except Exception:  # the defect may also break code that the replay does not expect to fail
        failed = True
    assert failed is (name not in NOT_IN_REACH)


@pytest.fixture(scope="module")
def steps() -> Steps[Any]:
    reference = MODELS["Flush"]
    return graph(reference, reference.from_constants(constants(configuration("Flush"))))


@pytest.fixture(scope="module")
def states(steps: Steps[Any]) -> States:
    return States(steps)


def test_recovery_from_any_crash_image_reaches_a_state_of_the_model(
    flush: list[Script], states: States
) -> None:
    found = Recovered()
    for script in flush[::10]:
        expand(script, states, found, every=7)
    assert [failure.why for failure in found.failures] == []
    assert found.edges > 5
    assert found.images > 100


def test_a_disk_image_detects_a_recovery_that_forgets_queue_entries(
    flush: list[Script], states: States, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "dispatch_again", _nothing_cut)
    found = Recovered()
    for script in flush[::10]:
        expand(script, states, found, every=20)
    assert found.failures


@pytest.mark.deep("more than 10,000 disk images; a sample is recovered in every run")
@pytest.mark.timeout(900)
def test_recovery_from_every_image_of_many_crashes_matches_the_model(
    flush: list[Script], states: States
) -> None:
    found = Recovered()
    for script in flush:
        expand(script, states, found)
    assert not found.failures
    assert found.images > 10_000


def test_the_graph_shows_the_reached_steps(flush: list[Script], steps: Steps[Any]) -> None:
    seen = _on_store(flush[:20])
    drawn = draw("Flush", "impl", steps, seen.states, seen.steps)
    assert f"{len(seen.steps):,} of 36,127 steps" in drawn
    assert all(colour in drawn for colour in ("#1a7f37", "#d29922", "#cf222e"))


def test_an_unknown_target_name_gives_no_target() -> None:
    found: list[Callable[[], Any] | None] = [resolve("impl", "Guarantee"), resolve("unknown", "Flush")]
    assert found == [None, None]
