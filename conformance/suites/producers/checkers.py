"""The named invariants of producers; each one is a pure function of a run.

The verdict is unknown, never held, if nothing was observed that could show a violation. Names and ids are
those of spec/invariants.toml.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.engine.stepped_run import Checkers, Run
from mqproof.conformance.suites.producers.oracle import CLOCK_S, ended_s, rest_s
from mqproof.conformance.suites.producers.steps import Operation, Route, Send
from mqproof.conformance.suites.producers.target import BROKERS, Attempt, Setup


def retry_avoids_last_broker(setup: Setup, run: Run[Operation]) -> Finding:
    """ROUTE-5 RetryAvoidsLastBroker: a retry goes to another broker, if another one is eligible."""
    tally = Tally()
    for step, send, route, rested in _followed(setup, run):
        for number, (last, then) in enumerate(pairwise(send.attempts), start=1):
            fresh = set(route) - _certainly_not_free(rested, send, number)
            choice = fresh if setup.strategy and fresh else set(route)
            if choice - {last.broker}:
                tally.looked += 1
                if then.broker == last.broker:
                    tally.found(
                        f"step {step}: {then.broker} is tried again, expected one of {sorted(choice)}"
                    )
    return tally.finding("retries")


def faulty_broker_rested(setup: Setup, run: Run[Operation]) -> Finding:
    """ROUTE-6 FaultyBrokerRested: with the strategy on, no resting broker is chosen while another is free."""
    tally = Tally()
    for step, send, route, rested in _followed(setup, run):
        for number, attempt in enumerate(send.attempts if setup.strategy else ()):
            until = {**rested, **_rests(send, number)}
            resting = {b for b, until_s in until.items() if until_s > attempt.at_s + CLOCK_S}
            free = set(route) - {b for b, until_s in until.items() if until_s > attempt.at_s - CLOCK_S}
            if resting and free:
                tally.looked += 1
                if attempt.broker in resting:
                    until_s = until[attempt.broker]
                    tally.found(
                        f"step {step}: {attempt} must rest until {until_s:.3f} s, {sorted(free)} need not"
                    )
    return tally.finding("choices")


def _followed(
    setup: Setup, run: Run[Operation]
) -> Iterator[tuple[int, Send, tuple[str, ...], dict[str, float]]]:
    """Yield (step, send, route, the end of each broker's rest before the send)."""
    route = BROKERS[: setup.brokers]
    rested: dict[str, float] = {}
    for step, operation in run.numbered():
        match operation:
            case Route(brokers):
                route = brokers
            case Send():
                yield step, operation, route, dict(rested)
                rested |= _rests(operation, len(operation.attempts))


def _rests(send: Send, number: int) -> dict[str, float]:
    """Return the end of the rest of each broker in the first `number` attempts."""
    began_s = send.attempts[0].at_s if send.attempts else 0.0

    def until_s(attempt: Attempt) -> float:
        return ended_s(attempt, began_s) + rest_s(attempt.fate)

    return {attempt.broker: until_s(attempt) for attempt in send.attempts[:number]}


def _certainly_not_free(rested: dict[str, float], send: Send, number: int) -> set[str]:
    """Return the brokers that rest, or may rest, when attempt `number` is made."""
    at_s = send.attempts[number].at_s
    until = {**rested, **_rests(send, number)}
    return {broker for broker, until_s in until.items() if until_s > at_s - CLOCK_S}


def checkers(setup: Setup) -> Checkers[Operation]:
    return {
        "ROUTE-5": partial(retry_avoids_last_broker, setup),
        "ROUTE-6": partial(faulty_broker_rested, setup),
    }
