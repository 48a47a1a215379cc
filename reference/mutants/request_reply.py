"""Broken variants of requests and replies; spec/tla/mutants explains each bug under the same name."""

from typing import Final

from mqproof.reference import request_reply
from mqproof.reference.mutants.mutant import Mutant
from mqproof.reference.request_reply import Config, Push, State
from mqproof.reference.updates import with_item


def _pushed_to_any_client(config: Config, state: State, call: str) -> State | None:
    if call not in state.stored:
        return None
    wrong = [client for client in config.clients if client in state.registered]
    new = [Push(call, client) for client in wrong if Push(call, client) not in state.pushes]
    return state._replace(pushes=state.pushes | {new[0]}) if new else None


def _correlation_not_compared(
    config: Config, state: State, client: str, call: str, arrives: bool
) -> State | None:
    for index, other in enumerate(config.calls):
        if request_reply.waits(config, state, client, other) and Push(call, client) in state.pushes:
            push = state._replace(pushes=state.pushes | {Push(other, client)})
            after = request_reply.receive(config, push, client, other, arrives)
            return after and after._replace(got=with_item(after.got, index, call))
    return request_reply.receive(config, state, client, call, arrives)


def _late_reply_given(config: Config, state: State, client: str, call: str, arrives: bool) -> State | None:
    index = config.calls.index(call)
    if state.outcome[index] in request_reply.ENDS and state.results[index] < 2:
        state = state._replace(outcome=with_item(state.outcome, index, "waiting"))
    return request_reply.receive(config, state, client, call, arrives)


def _confirmed_when_pushed(config: Config, state: State, call: str) -> State | None:
    after = request_reply.reply(config, state, call)
    return after and after._replace(confirmed=state.confirmed | {call})


def _no_time_limit(_config: Config, _state: State, _call: str) -> State | None:
    return None


def _forgotten_by_broker(config: Config, state: State, client: str) -> State | None:
    return None if client in state.caller else request_reply.connect(config, state, client)


_TWO_CLIENTS: Final = Config(clients=("c1", "c2"), calls=("r1",), patient=())
_TWO_CALLS: Final = Config(patient=())
_ONE: Final = Config(calls=("r1",), patient=())

MUTANTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        request_reply.MODEL,
        "PushedToAnyClient",
        invariant="ReplyToItsRequester",
        action="Reply",
        apply=_pushed_to_any_client,
        config=_TWO_CLIENTS,
    ),
    Mutant(
        request_reply.MODEL,
        "CorrelationNotCompared",
        invariant="ReplyToItsRequester",
        action="Receive",
        apply=_correlation_not_compared,
        config=_TWO_CALLS,
    ),
    Mutant(
        request_reply.MODEL,
        "LateReplyGiven",
        invariant="RequestEndsOnce",
        action="Receive",
        apply=_late_reply_given,
        config=_ONE,
    ),
    Mutant(
        request_reply.MODEL,
        "ConfirmedWhenPushed",
        invariant="ReplyConfirmed",
        action="Reply",
        apply=_confirmed_when_pushed,
        config=_ONE,
    ),
    Mutant(
        request_reply.MODEL,
        "NoTimeLimit",
        invariant="RequestEnds",
        action="Expire",
        apply=_no_time_limit,
        config=_ONE,
    ),
    Mutant(
        request_reply.MODEL,
        "ForgottenByBroker",
        invariant="RequestEnds",
        action="Connect",
        apply=_forgotten_by_broker,
        config=Config(calls=("r1",), patient=("r1",)),
    ),
)
