"""The steps of one client as a history: a run that the model explains violates no rule."""

import random

import pytest

from mqproof.conformance.adapters.impl import ImplTarget
from mqproof.conformance.history.judge import judge
from mqproof.conformance.history.pairing import record
from mqproof.conformance.suites.flush.session import Session
from mqproof.conformance.suites.flush.step_history import as_lines
from mqproof.conformance.suites.flush.steps import End
from mqproof.conformance.suites.flush.target import Setup
from mqproof.report.model import Verdict
from tests.conformance.suites.flush.histories import KILLED, SYNC, abandoned, found, refused, seen, stored


def violated(session: Session) -> set[str]:
    found_ = judge(as_lines(session.history))
    return {judged.rule.id for judged in found_ if judged.finding.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize("seed", range(8))
def test_a_run_with_crashes_of_our_broker_breaks_no_rule(seed: int) -> None:
    chance = random.Random(seed)
    mode = chance.choice(("SYNC_FLUSH", "ASYNC_FLUSH"))
    session = Session(ImplTarget(), Setup(mode, queues=2, seed=seed))
    try:
        for _ in range(30):
            queue = chance.randrange(2)
            match chance.randrange(8):
                case 0 | 1 | 2 | 3:
                    session.send(queue, chance.randrange(1, 300))
                case 4 | 5:
                    session.pull(queue, 4)
                case 6 if session.positions[queue] > session.committed[queue]:
                    session.commit(queue)
                case 7:
                    session.end(chance.choice(list(End)), chance.randrange(100))
                    session.restart()
        session.drain()
    finally:
        session.target.close()
    assert violated(session) == set()


def test_every_step_is_written_as_history_lines() -> None:
    history = record(
        as_lines(seen(SYNC, stored("m1", 0), refused("m2"), abandoned("m3"), found(0, "m1"), KILLED))
    )
    assert history.gap_count == 0
    assert [str(sent.span.outcome) for sent in history.sends] == ["ok", "fail", "info"]
    assert [message.id for _, message in history.sights] == ["m1"]
    assert [fault.value.kind for fault in history.faults] == ["kill"]
