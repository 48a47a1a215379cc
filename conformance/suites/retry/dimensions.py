"""The dimensions of the suite of retries and dead letters, and the scenario that meets a row of them."""

from typing import Final

from mqproof.conformance.engine.broker_faults import FAULT, NO_FAULT, BrokerFault, fault_dimension
from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Row, Value
from mqproof.conformance.suites.retry.session import RetrySession
from mqproof.conformance.suites.retry.target import RETRIES_MAX, Capability

UNKNOWN_MAX: Final = 3
"""The maximum number of requests with an unknown result in one example.

Each one doubles the states that the oracle keeps.
"""
LOST: Final = "the messages are deleted"
_SENT: Final = {"none": 0, "1": 1, "4": 4, "beyond the last": 30}
_BACK: Final = {
    "of the broker": 0,
    "1": 1,
    "4": 4,
    "18": 18,
    "beyond the last": 40,
    "dead letters at once": -1,
}
_TIMES: Final = {"of the group": None, "0": 0, "1": 1, "more than the group's": RETRIES_MAX + 1}
_ROUNDS: Final = {"one": 1, "more than the ladder has": RETRIES_MAX + 2}
_FAULTS: Final = fault_dimension(each for each in BrokerFault if each is not BrokerFault.POWER_LOSS)

DIMENSIONS: Final = Dimensions(
    (
        Dimension(
            "retry queues",
            tuple(Value(str(count), f" {count} retry queues") for count in (0, 1, 2)),
            opens=True,
        ),
        Dimension(
            "delay level of the send",
            tuple(
                Value(name, rf"^send m\d+ with delay level {level}$" if level else r"^send m\d+$")
                for name, level in _SENT.items()
            ),
        ),
        Dimension(
            "delay level of the retry",
            tuple(Value(name, rf"^send back .*, delay level {level}\b") for name, level in _BACK.items()),
        ),
        Dimension(
            "maximum of retries",
            tuple(
                Value(name, r"^send back .*, delay level -?\d+:" if most is None else f"at most {most} retr")
                for name, most in _TIMES.items()
            ),
        ),
        Dimension(
            "answer",
            (Value("awaited", r"^send back .*: (?:ok|refused)$"), Value("not awaited", ": not waited for$")),
        ),
        Dimension(
            "rounds",
            tuple(Value(name, rf"(?s)(?:^send back m.*?){{{count}}}") for name, count in _ROUNDS.items()),
        ),
        Dimension(
            FAULT,
            (
                *_FAULTS.values,
                Value(LOST, "its messages are deleted", needs=frozenset({Capability.LOSE_MESSAGES})),
            ),
        ),
    ),
)  # fmt: skip


def scenario(session: RetrySession, row: Row) -> None:
    """Send a message, send it back in some way, and again, and inject a fault while a copy waits."""
    session.send(_SENT[row["delay level of the send"]])
    session.settle()
    oneway = row["answer"] == "not awaited" and _unknown(session) < UNKNOWN_MAX
    level, most = _BACK[row["delay level of the retry"]], _TIMES[row["maximum of retries"]]
    for number in range(_ROUNDS[row["rounds"]] if session.copies else 0):
        session.send_back(session.copies[-1], level, most, oneway=oneway and not number)
        if number:
            session.settle()
    if row[FAULT] == LOST:
        session.lose_messages()
    elif row[FAULT] != NO_FAULT:
        session.inject(BrokerFault(row[FAULT]))
    session.settle()


def _unknown(session: RetrySession) -> int:
    return sum(": not waited for" in step for step in session.script())
