"""The Raft core of one member: a state machine without I/O.

The shell passes in requests, responses, the time and which entries are durable. After each such call it
1. carries out `take_changes()` in order (a Ballot must be durable before the next change is handled),
2. sends `take_messages(read)`: requests to members, and responses together with their requests,
3. calls `tick` at `deadline` at the latest.
The same calls give the same results: randomness comes from a seeded generator, and time is an argument. Times
are in milliseconds of any clock. If the clock jumps, the worst result is an unnecessary election.
"""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple

from mqproof.impl.dledger.changes import Ballot, Change
from mqproof.impl.dledger.codes import ResponseCode, Vote
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.election import Election
from mqproof.impl.dledger.log_replication import Following, Leading
from mqproof.impl.dledger.rpc_bodies import (
    NO_INDEX,
    NO_TERM,
    NORMAL,
    Entry,
    HeartBeatRequest,
    HeartBeatResponse,
    PushRequest,
    PushResponse,
    Request,
    Response,
    TransferRequest,
    TransferResponse,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.dledger.state import Role, State
from mqproof.impl.dledger.terms import Terms


class _Transfer(NamedTuple):
    """The leader of a term is transferring its leadership, and serves no client in the meantime.

    The new leader does not wait until the lease of this one has expired.
    """

    term: int
    until: float


_NO_TRANSFER: Final = _Transfer(term=NO_TERM, until=math.inf)


class Core:
    """One member. `ballot` and `terms` are the durable state that was read from its disk."""

    def __init__(self, config: GroupConfig, ballot: Ballot, terms: Terms, chance: Random, now: float) -> None:
        self.config = config
        self.state = State(config, ballot, terms)
        self._election = Election(self.state, chance, now)
        self._leading = Leading(self.state)
        self._following = Following(self.state)
        self._transfer = _NO_TRANSFER
        self._prefer_at = now

    # -- input from the shell

    def handle(self, request: Request, now: float) -> None:
        """Handle a request of a member. The response is sent now, or once the state it reports is durable."""
        self._expire(now)
        if not self._is_for_us(request):
            return
        match request:
            case PushRequest():
                self._following.handle(request)
                self._election.caught_up(now)
            case HeartBeatRequest():
                self._election.handle_heart_beat(request, now)
            case VoteRequest():
                self._election.handle_vote(request, now)
            case TransferRequest():
                self._election.handle_take_leadership(request, now)

    def answered(self, request: Request, response: Response, now: float) -> None:
        """Handle the response to one of our requests. It may be late or repeated."""
        self._expire(now)
        if self.state.is_too_far(response.term):
            self.state.refuse(response.local_id, f"a response of term {response.term}")
            return
        match request, response:
            case PushRequest(), PushResponse():
                self._leading.pushed(request, response, now)
            case HeartBeatRequest(), HeartBeatResponse():
                self._election.heart_beat_answered(request, response, now)
            case VoteRequest(), VoteResponse():
                self._election.voted(request, response, now)
            case TransferRequest(), _:
                is_over = response.code != ResponseCode.SUCCESS and response.term <= request.term
                if request.term == self._transfer.term and is_over:
                    self._end_transfer()
            case _:
                pass  # not a response to this kind of request

    def unsent(self, request: TransferRequest) -> None:
        """Handle that a transfer did not leave this member: it ends without a new leader."""
        if request.term == self._transfer.term:
            self._end_transfer()

    def tick(self, now: float) -> None:
        """Handle the passing of time."""
        self._election.tick(now)
        if self._is_handing_over and now >= self._transfer.until:
            self._election.hand_over(now)
        if self.state.role is Role.LEADER and now >= self._prefer_at:
            self._prefer_at = now + 1000
            self._transfer_to_preferred(now)

    def append(self, body: object, now: float) -> tuple[ResponseCode, int]:
        """Accept one entry from a client, as `append_all` does."""
        return self.append_all([body], now)

    def append_all(self, bodies: Sequence[object], now: float) -> tuple[ResponseCode, int]:
        """Accept entries from a client, all or none.

        Returns SUCCESS and the index of the last one, or the reason for the refusal. The client may get its
        acknowledgement only when that entry is committed in the term in which it was accepted.
        """
        self._expire(now)
        state = self.state
        if state.role is not Role.LEADER:
            return ResponseCode.NOT_LEADER, NO_INDEX
        if self._is_handing_over:
            return ResponseCode.LEADER_TRANSFERRING, NO_INDEX
        if state.terms.end - state.commit >= self.config.pending_max:
            return ResponseCode.LEADER_PENDING_FULL, NO_INDEX
        for body in bodies:
            state.append(NORMAL, body)
        return ResponseCode.SUCCESS, state.terms.end

    def flushed(self, index: int) -> None:
        """Record that the ledger is durable up to `index`. No cut has touched these entries since."""
        state = self.state
        assert index <= state.terms.end, f"{index} is durable, the ledger ends at {state.terms.end}"
        state.durable = max(state.durable, index)
        self._following.answer_kept()
        if self._leading.is_leading:
            self._leading.advance_commit()

    def transfer(self, member: str, now: float) -> ResponseCode:
        """Transfer the leadership to a member: request that it take over, and serve no client meanwhile.

        The leader serves again if the member refuses. It steps down if there is no answer.
        """
        state = self.state
        if state.role is not Role.LEADER:
            return ResponseCode.NOT_LEADER
        if member not in self.config.peers:
            return ResponseCode.UNKNOWN_MEMBER
        if self._is_handing_over:  # if this one failed, the other could still succeed
            return ResponseCode.LEADER_TRANSFERRING
        if self._leading.is_leading and self._leading.lag(member) > self.config.transfer_lag_max:
            return ResponseCode.FALL_BEHIND_TOO_MUCH
        self._transfer = _Transfer(state.term, now + self.config.transfer_ms)
        state.ask(
            TransferRequest,
            member,
            transfer_id=state.self_id,
            transferee_id=member,
            take_leadership_ledger_index=state.terms.end,
        )
        return ResponseCode.SUCCESS

    def _end_transfer(self) -> None:
        """End the transfer without a new leader: clients are served again."""
        self._transfer = _NO_TRANSFER

    def successor(self, now: float) -> str | None:
        """Return the member to which a leader should transfer its leadership before it stops.

        Chooses among the members that are alive and close behind: a preferred one first, otherwise the one
        that lags least. Returns None if there is no such member, or this one does not lead.
        """
        if not self._leading.is_leading:
            return None
        fit = [member for member in self.config.peers if self._may_take_over(member, now)]
        preferred = (member for member in self.config.preferred_leaders if member in fit)
        return next(preferred, min(fit, key=self._leading.lag, default=None))

    # -- output to the shell

    def take_changes(self) -> list[Change]:
        """Return the changes to carry out, in order."""
        changes, self.state.changes = self.state.changes, []
        return changes

    def take_messages(
        self, read: Callable[[int], Entry], now: float
    ) -> tuple[list[Request], list[tuple[Request, Response]]]:
        """Return the requests and responses that may be sent now that all changes were carried out.

        `read` returns an entry of the ledger by its index.
        """
        state = self.state
        assert not state.changes, "changes were not carried out"
        self._leading.push(read, now)
        requests, state.requests = state.requests, []
        answers, state.answers = state.answers, []
        return requests, answers

    def deadline(self) -> float:
        """Return the time when `tick` is due."""
        at = min(self._election.deadline(), self._leading.deadline())
        if self._is_handing_over:
            at = min(at, self._transfer.until)
        if self.state.role is Role.LEADER and self._prefers_others:
            at = min(at, self._prefer_at)
        return at

    def leads(self, now: float) -> bool:
        """Return whether the member may answer clients.

        It leads, a quorum has just confirmed that, it knows what is committed, and no transfer is under way.
        """
        knows = self.state.terms.at(self.state.commit) == self.state.term
        return self._election.leads(now) and knows and not self._is_handing_over

    # -- internals

    def _expire(self, now: float) -> None:
        """Step down if the leadership has expired, before anything else: the process may have been paused."""
        if self.state.role is Role.LEADER and not self._election.leads(now):
            self._election.tick(now)

    def _is_for_us(self, request: Request) -> bool:
        problem = None
        if request.group != self.config.group:
            problem = ResponseCode.UNKNOWN_GROUP
        elif request.remote_id != self.config.self_id or request.local_id not in self.config.members:
            problem = ResponseCode.UNKNOWN_MEMBER
        elif request.local_id == self.config.self_id:
            problem = ResponseCode.UNEXPECTED_MEMBER
        elif self.state.is_too_far(request.term):
            problem = ResponseCode.UNEXPECTED_ARGUMENT
            self.state.refuse(request.local_id, f"a request of term {request.term}")
        if problem is None:
            return True
        match request:
            case VoteRequest():
                unknown = problem in (ResponseCode.UNKNOWN_GROUP, ResponseCode.UNKNOWN_MEMBER)
                vote = Vote.REJECT_UNKNOWN_LEADER if unknown else Vote.REJECT_UNEXPECTED_LEADER
                self.state.answer(request, VoteResponse, code=problem, vote_result=vote)
            case HeartBeatRequest():
                self.state.answer(request, HeartBeatResponse, code=problem)
            case PushRequest():
                self.state.answer(request, PushResponse, code=problem)
            case TransferRequest():
                self.state.answer(request, TransferResponse, code=problem)
        return False

    @property
    def _is_handing_over(self) -> bool:
        """Whether a transfer is under way in this term, which a leader that steps down leaves."""
        return self._transfer.term == self.state.term

    @property
    def _prefers_others(self) -> bool:
        preferred = self.config.preferred_leaders
        return bool(preferred) and self.config.self_id not in preferred

    def _transfer_to_preferred(self, now: float) -> None:
        """Transfer the leadership to a preferred member that is alive and close behind."""
        if not self._prefers_others or not self._leading.is_leading:
            return
        for member in self.config.preferred_leaders:
            if self._may_take_over(member, now):
                self.transfer(member, now)
                return

    def _may_take_over(self, member: str, now: float) -> bool:
        """Return whether the member is alive and close behind."""
        close = self._leading.lag(member) <= self.config.transfer_lag_max
        return close and self._election.is_heard(member, now)
