"""The retry suite's oracle and checkers on handwritten histories."""

from typing import cast

import pytest

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.shared_steps import Span
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.retry.checkers import checkers
from mqproof.conformance.suites.retry.oracle import explanation
from mqproof.conformance.suites.retry.session import RetrySession
from mqproof.conformance.suites.retry.steps import LoseMessages, Operation, Read, Send, SendBack
from mqproof.conformance.suites.retry.target import Answer, Copy, Place, RetryTarget, Setup
from mqproof.report.model import Verdict

SETUP = Setup("topic", (1.0, 5.0, 10.0, 30.0), slack_s=2.0, clock_s=0.0)
FIRST = Copy("m1", 0, "topic", "", 7)
AGAIN = Copy("m1", 1, "topic", "id", 8)
SENT: tuple[Operation, ...] = (
    Send("m1", 0, "id", Span(0, 0)),
    Read(Place.TOPIC, (FIRST,), Span(0, 0), False),
)


def back(answer: Answer = Answer.OK, level: int = 0, times_max: int | None = None) -> SendBack:
    return SendBack(FIRST, level, times_max, answer, Span(0, 0))


def read(place: Place, at_s: float, *copies: Copy, settled: bool = False) -> Read:
    return Read(place, copies, Span(at_s, at_s), settled)


def judged(*operations: Operation) -> dict[str, Verdict]:
    seen = Stepped("a group", explanation(SETUP, 1), checkers(SETUP, 1))
    for operation in (*SENT, *operations):
        seen.observe(operation)
    return {i: finding.verdict for i, finding in seen.findings().items()}


def violated(*operations: Operation) -> set[str]:
    return {i for i, verdict in judged(*operations).items() if verdict is Verdict.VIOLATED}


def test_the_first_retry_arrives_on_level_3_in_time() -> None:
    assert judged(back(), read(Place.RETRY, 10, AGAIN, settled=True)) == dict.fromkeys(
        ("DELIV-2", "DELIV-3", "DELIV-7", "DELIV-8", "SPEC-1"), Verdict.HELD
    )


@pytest.mark.parametrize(
    ("operations", "broken"),
    [
        ((back(), read(Place.RETRY, 9.9, AGAIN)), "DELIV-8"),
        ((back(), read(Place.DEAD, 10, AGAIN)), "DELIV-7"),
        ((back(times_max=0), read(Place.RETRY, 10, AGAIN)), "DELIV-7"),
        ((back(level=-1), read(Place.DEAD, 3, settled=True)), "DELIV-7"),
        ((back(), read(Place.RETRY, 20, settled=True)), "DELIV-7"),
        ((back(), read(Place.RETRY, 10, AGAIN, AGAIN)), "DELIV-3"),
        ((back(), read(Place.RETRY, 10, AGAIN._replace(topic="%RETRY%g"))), "DELIV-2"),
        ((back(), read(Place.RETRY, 10, AGAIN._replace(origin="other"))), "DELIV-2"),
        ((back(Answer.REFUSED),), "SPEC-1"),
        ((SendBack(None, 0, None, Answer.OK, Span(0, 0)),), "SPEC-1"),
        ((back(), read(Place.RETRY, 13)), "SPEC-1"),
    ],
)
def test_a_forbidden_run_names_the_invariant(operations: tuple[Operation, ...], broken: str) -> None:
    assert broken in violated(*operations)


def test_a_request_without_a_known_result_may_have_stored_a_copy() -> None:
    unknown = back(Answer.UNKNOWN)
    assert violated(unknown, read(Place.RETRY, 10, AGAIN)) == set()
    assert violated(unknown, read(Place.RETRY, 20, settled=True)) == set()
    too_late = (unknown, read(Place.RETRY, 20), read(Place.RETRY, 21, AGAIN))
    assert "SPEC-1" in violated(*too_late)


def crashed(*read_again_at_s: float) -> list[Operation]:
    """Return a run in which the broker is killed at 11 s.

    A message is sent back at 0 s and at 2 s, each time with a delay of 10 s. A reader receives a copy at 10.5
    s, and one at each of the given times after the kill.
    """
    second = SendBack(FIRST, 0, None, Answer.OK, Span(2, 2))
    killed = InjectFault(BrokerFault.KILL, 11)
    again = [read(Place.RETRY, at_s, AGAIN) for at_s in read_again_at_s]
    return [
        back(), second, read(Place.RETRY, 10.5, AGAIN), killed, *again, read(Place.RETRY, 20, settled=True),
    ]  # fmt: skip


@pytest.mark.parametrize("times", [(12.5,), (11.5, 12.5), (11.5, 11.5, 12.5, 12.5)])
def test_a_copy_may_arrive_twice_after_a_crash_if_every_copy_arrives(times: tuple[float, ...]) -> None:
    assert violated(*crashed(*times)) == set()


@pytest.mark.parametrize(("stored_s", "broken"), [(111.5, {"DELIV-7"}), (112.0, set()), (None, set())])
def test_a_copy_arrives_at_the_time_when_its_broker_stored_it(
    stored_s: float | None, broken: set[str]
) -> None:
    """The broker's clock is 100 s ahead, as the first copy shows; the next copy is read late."""
    operations = crashed()
    first, late = AGAIN._replace(stored_s=110.0), AGAIN._replace(stored_s=stored_s)
    operations[2] = read(Place.RETRY, 10, first)
    assert violated(*operations[:-1], read(Place.RETRY, 13, late), operations[-1]) == broken


def test_a_repeated_copy_does_not_replace_a_copy_that_was_not_due() -> None:
    assert violated(*crashed(11.5)) == {"DELIV-7"}
    assert violated(*crashed()) == {"DELIV-7"}


def test_only_messages_that_are_sent_after_a_loss_must_arrive() -> None:
    lost = (back(), LoseMessages(), read(Place.RETRY, 20, settled=True))
    assert violated(*lost) == set()
    again = SendBack(FIRST, 0, None, Answer.OK, Span(30, 30))
    assert violated(*lost, again, read(Place.RETRY, 60, settled=True)) == {"DELIV-7"}


class Late:
    """A broker in real time that shows a dead letter when its queue is read the second time.

    A copy that was not promised is there at once.
    """

    name = "late"
    is_simulated = False

    def __init__(self) -> None:
        self.now = 0.0
        self.dead = {1: AGAIN._replace(times=1)}
        self.reads = 0

    def open(self, retry_queues: int) -> Setup:  # noqa: ARG002
        return SETUP

    def now_s(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def send_back_oneway(self, *_: object) -> Span:
        return Span(self.now, self.now)

    def send_back(self, *_: object) -> tuple[Answer, Span]:
        self.dead[self.reads + 2] = AGAIN._replace(times=2)
        return Answer.OK, Span(self.now, self.now)

    def read(self, place: Place) -> tuple[tuple[Copy, ...], Span]:
        self.reads += place is Place.DEAD
        copy = self.dead.pop(self.reads, None) if place is Place.DEAD else None
        return (copy,) if copy else (), Span(self.now, self.now)


def test_a_copy_that_was_not_promised_does_not_replace_an_expected_one() -> None:
    target = Late()
    session = RetrySession(cast(RetryTarget, target), 1)
    session.send_back(FIRST, -1, None, oneway=True)
    session.read()
    (unheard,) = session.copies
    session.send_back(unheard, -1, None)
    session.settle()
    assert [copy.times for copy in session.copies] == [1, 2]
    assert session.findings()["DELIV-7"].verdict is Verdict.HELD
