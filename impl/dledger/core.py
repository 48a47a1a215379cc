"""The Raft core of one member: a state machine that touches no world.

The shell gives it requests, answers, the time and what has become durable, and after each such call

1. carries out `take_changes()` in order (a Ballot is durable before the next change is looked at),
2. sends `take_messages(read)`: requests to members, and answers together with the request they answer,
3. calls `tick` at `deadline` at the latest.

The same calls give the same results: chance is a seeded generator, time an argument. Times are milliseconds
of any clock; that it jumps may cost an election, and nothing else.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from mqproof.impl.dledger.changes import Ballot, Change
from mqproof.impl.dledger.codes import ResponseCode, Vote
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.election import Election
from mqproof.impl.dledger.log_replication import Following, Leading
from mqproof.impl.dledger.rpc_bodies import (
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
    """The leader of a term hands over, and takes no entries until then."""

    member: str
    term: int
    until: float


class Core:
    """One member. `ballot` and `terms` are what its disk has; all of that is durable."""

    def __init__(self, config: GroupConfig, ballot: Ballot, terms: Terms, chance: Random, now: float) -> None:
        self.config = config
        self.state = State(config, ballot, terms)
        self._election = Election(self.state, chance, now)
        self._leading = Leading(self.state)
        self._following = Following(self.state)
        self.end_transfer()
        self._prefer_at = now

    # -- what the shell tells

    def handle(self, request: Request, now: float) -> None:
        """A member's request arrived. It is answered, now or when what it asks for is durable."""
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
        """The answer to a request of ours arrived, perhaps late, perhaps again."""
        self._expire(now)
        match request, response:
            case PushRequest(), PushResponse():
                self._leading.pushed(request, response, now)
            case HeartBeatRequest(), HeartBeatResponse():
                self._election.heart_beat_answered(request, response, now)
            case VoteRequest(), VoteResponse():
                self._election.voted(request, response, now)
            case TransferRequest(), _:
                if request.term == self._transfer.term and response.code != ResponseCode.SUCCESS:
                    self.end_transfer()
            case _:
                pass  # not an answer to what was asked

    def tick(self, now: float) -> None:
        """Time passed."""
        self._election.tick(now)
        if self.state.role is Role.LEADER and now >= self._prefer_at:
            self._prefer_at = now + 1000
            self._hand_to_preferred(now)

    def append(self, body: object, now: float) -> tuple[ResponseCode, int]:
        """Take an entry from a client, as `append_all`."""
        return self.append_all([body], now)

    def append_all(self, bodies: Sequence[object], now: float) -> tuple[ResponseCode, int]:
        """Take entries from a client, all or none: SUCCESS and the last one's index, or why not. They are
        acknowledged to the client when that one is committed in the term in which it was taken, and not
        before."""
        self._expire(now)
        state = self.state
        if state.role is not Role.LEADER:
            return ResponseCode.NOT_LEADER, -1
        if self._is_handing_over(now):
            return ResponseCode.LEADER_TRANSFERRING, -1
        if state.terms.end - state.commit >= self.config.pending_max:
            return ResponseCode.LEADER_PENDING_FULL, -1
        for body in bodies:
            state.append(NORMAL, body)
        return ResponseCode.SUCCESS, state.terms.end

    def flushed(self, index: int) -> None:
        """The ledger is durable up to `index`, which no cut has touched since."""
        state = self.state
        assert index <= state.terms.end, f"{index} is durable, the ledger ends at {state.terms.end}"
        if index > state.durable:
            state.durable = index
            self._following.answer_kept()
            if self._leading.is_leading:
                self._leading.advance_commit()

    def transfer(self, member: str, now: float) -> ResponseCode:
        """Hand the leadership to a member: it is asked to take over, and no entry is taken meanwhile."""
        state = self.state
        if state.role is not Role.LEADER:
            return ResponseCode.NOT_LEADER
        if member not in self.config.peers:
            return ResponseCode.UNKNOWN_MEMBER
        if self._leading.is_leading and self._leading.lag(member) > self.config.transfer_lag_max:
            return ResponseCode.FALL_BEHIND_TOO_MUCH
        self._transfer = _Transfer(member, state.term, now + self.config.transfer_ms)
        state.ask(
            TransferRequest,
            member,
            transfer_id=state.self_id,
            transferee_id=member,
            take_leadership_ledger_index=state.terms.end,
        )
        return ResponseCode.SUCCESS

    def end_transfer(self) -> None:
        """Nobody has taken over: entries are taken again."""
        self._transfer = _Transfer("", -1, 0.0)

    def successor(self, now: float) -> str | None:
        """Whom a leader that is to end should hand over to: who is alive and close, a preferred one first,
        else who lacks least. None when there is nobody, or it does not lead."""
        if self.state.role is not Role.LEADER or not self._leading.is_leading:
            return None
        fit = [member for member in self.config.peers if self._may_take_over(member, now)]
        preferred = (member for member in self.config.preferred_leaders if member in fit)
        return next(preferred, min(fit, key=self._leading.lag, default=None))

    # -- what the shell takes

    def take_changes(self) -> list[Change]:
        """What is to be carried out, in order."""
        changes, self.state.changes = self.state.changes, []
        return changes

    def take_messages(
        self, read: Callable[[int], Entry], now: float
    ) -> tuple[list[Request], list[tuple[Request, Response]]]:
        """Requests and answers that may leave now: all changes were carried out. `read` gives an entry of
        the ledger by its index."""
        state = self.state
        assert not state.changes, "changes were not carried out"
        self._leading.push(read, now)
        requests, state.requests = state.requests, []
        answers, state.answers = state.answers, []
        return requests, answers

    def deadline(self) -> float:
        """When `tick` is due."""
        at = min(self._election.deadline(), self._leading.deadline())
        if self.state.role is Role.LEADER and self._prefers_others:
            at = min(at, self._prefer_at)
        return at

    def leads(self, now: float) -> bool:
        """It leads, and a quorum said so within `give_up_ms`: only then it answers clients."""
        return self._election.leads(now)

    # -- inside

    def _expire(self, now: float) -> None:
        """Whose time is over steps down before it does anything else: it may have been stopped for long."""
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
        if problem is None:
            return True
        match request:
            case VoteRequest():
                known = problem is ResponseCode.UNEXPECTED_MEMBER
                vote = Vote.REJECT_UNEXPECTED_LEADER if known else Vote.REJECT_UNKNOWN_LEADER
                self.state.answer(request, VoteResponse, code=problem, vote_result=vote)
            case HeartBeatRequest():
                self.state.answer(request, HeartBeatResponse, code=problem)
            case PushRequest():
                self.state.answer(request, PushResponse, code=problem)
            case TransferRequest():
                self.state.answer(request, TransferResponse, code=problem)
        return False

    def _is_handing_over(self, now: float) -> bool:
        return self._transfer.term == self.state.term and now < self._transfer.until

    @property
    def _prefers_others(self) -> bool:
        preferred = self.config.preferred_leaders
        return bool(preferred) and self.config.self_id not in preferred

    def _hand_to_preferred(self, now: float) -> None:
        """A preferred member that is alive and close gets the leadership."""
        if not self._prefers_others or self._is_handing_over(now) or not self._leading.is_leading:
            return
        for member in self.config.preferred_leaders:
            if self._may_take_over(member, now):
                self.transfer(member, now)
                return

    def _may_take_over(self, member: str, now: float) -> bool:
        """It is alive and close."""
        close = self._leading.lag(member) <= self.config.transfer_lag_max
        return close and self._election.is_heard(member, now)
