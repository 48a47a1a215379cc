"""The named invariants of requests and replies; each one is a pure function of a run.

The verdict is unknown, never held, if nothing was observed that could show a violation. Names and ids are
those of spec/invariants.toml.
"""

from dataclasses import dataclass, field
from typing import Final

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.engine.stepped_run import Checkers, Run
from mqproof.conformance.suites.request_reply.steps import Ended, Look, Lost, Operation, Reply, Request
from mqproof.conformance.suites.request_reply.target import Answer, End

MARGIN_S: Final = 0.3
"""A request may end this much later than its limit, because clients and brokers share a machine."""


@dataclass(slots=True)
class _Known:
    """What the run shows about one request."""

    client: str
    stored: bool
    until_s: float
    """When its time limit is over."""
    is_lost: bool = False
    """Whether the process that waits for it has ended."""
    ends: list[Ended] = field(default_factory=list)
    replied_in_time: bool = False
    """Whether a reply was answered OK well before the limit, while the request waited."""


@dataclass(slots=True)
class _Seen:
    """What the run shows so far."""

    calls: dict[str, _Known] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """The clients without a process."""

    def follow(self, operation: Operation) -> None:
        match operation:
            case Request(call, client, limit_s, stored, at_s):
                self.calls[call] = _Known(client, stored, at_s + limit_s)
                self.gone.discard(client)
            case Reply(call, answer, _, at_s):
                one = self.calls[call]
                waits = not one.ends and not one.is_lost and at_s < one.until_s - MARGIN_S
                one.replied_in_time |= waits and answer is Answer.OK
            case Ended(call):
                self.calls[call].ends.append(operation)
            case Lost(client):
                self.gone.add(client)
                for one in self.calls.values():
                    one.is_lost |= one.client == client and not one.ends
            case _:
                pass


def reply_to_its_requester(run: Run[Operation]) -> Finding:
    """REPLY-1 ReplyToItsRequester: a request ends with its own reply, if that was confirmed in time."""
    tally, seen = Tally(), _Seen()
    for step, operation in run.numbered():
        seen.follow(operation)
        if isinstance(operation, Ended):
            one = seen.calls[operation.call]
            if operation.end is End.REPLY:
                tally.looked += 1
                if operation.body != operation.call:
                    tally.found(f"step {step}: {operation.call} got the reply to {operation.body}")
            elif one.replied_in_time:
                tally.looked += 1
                tally.found(f"step {step}: {operation.call} ends without the reply that was answered OK")
    return tally.finding("requests")


def request_ends_once(run: Run[Operation]) -> Finding:
    """REPLY-2 RequestEndsOnce: a request ends once, and with no reply after its time limit."""
    tally, seen = Tally(), _Seen()
    for step, operation in run.numbered():
        seen.follow(operation)
        if isinstance(operation, Ended):
            one = seen.calls[operation.call]
            tally.looked += 1
            if len(one.ends) > 1:
                tally.found(f"step {step}: {operation.call} ends again")
            elif operation.end is End.REPLY and operation.at_s > one.until_s + MARGIN_S:
                tally.found(f"step {step}: {operation.call} ends with a reply after its time limit")
    return tally.finding("requests")


def reply_confirmed(run: Run[Operation]) -> Finding:
    """REPLY-3 ReplyConfirmed: no reply to a client without a process is answered OK."""
    tally, seen = Tally(), _Seen()
    for step, operation in run.numbered():
        seen.follow(operation)
        if isinstance(operation, Reply) and seen.calls[operation.call].client in seen.gone:
            tally.looked += 1
            if operation.answer is Answer.OK:
                tally.found(f"step {step}: the reply to {operation.call} is answered OK, its client is gone")
    return tally.finding("replies")


def request_ends(run: Run[Operation]) -> Finding:
    """REPLY-4 RequestEnds: a request whose time limit is over has ended.

    A run is finite, so this is the part of the liveness that a time limit can show.
    """
    tally, seen = Tally(), _Seen()
    for step, operation in run.numbered():
        seen.follow(operation)
        if isinstance(operation, Look):
            for call, one in seen.calls.items():
                if not one.is_lost and operation.at_s > one.until_s + MARGIN_S:
                    tally.looked += 1
                    if not one.ends:
                        tally.found(f"step {step}: {call} has not ended")
    return tally.finding("requests")


def checkers() -> Checkers[Operation]:
    return {
        "REPLY-1": reply_to_its_requester,
        "REPLY-2": request_ends_once,
        "REPLY-3": reply_confirmed,
        "REPLY-4": request_ends,
    }
