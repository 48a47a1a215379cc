"""Elections: votes, rounds, heartbeats, and the timeouts after which a member acts."""

import math
from random import Random

from mqproof.impl.dledger import rules
from mqproof.impl.dledger.changes import Reason, Voted
from mqproof.impl.dledger.codes import ResponseCode, RoundResult, Vote
from mqproof.impl.dledger.rpc_bodies import (
    HeartBeatRequest,
    HeartBeatResponse,
    TransferRequest,
    TransferResponse,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.dledger.state import Role, State


class _Round:
    """The vote requests of a candidate, and the votes received so far."""

    def __init__(self, self_id: str, ends_at: float) -> None:
        self.results = {self_id: Vote.ACCEPT}
        self.asked: dict[str, VoteRequest] = {}
        self.ends_at = ends_at


class _Takeover:
    """A takeover that the leader requested of this follower."""

    def __init__(self, request: TransferRequest, until: float) -> None:
        self.request = request
        self.until = until
        self.term: int | None = None
        """The term in which it is a candidate; None while it still catches up."""


class Election:
    """The election part of one member.

    Times are in milliseconds of the clock of `now`, and are only compared.
    """

    def __init__(self, state: State, chance: Random, now: float) -> None:
        self._state = state
        self._config = state.config
        self._chance = chance
        self._round: _Round | None = None
        self._takeover: _Takeover | None = None
        self._stand_at = now + self._wait()
        self._leader_heard_at = now
        self._beat_at = now
        self._sent: dict[str, tuple[HeartBeatRequest, float]] = {}
        """The last heartbeat request to each follower, and the time when it was sent."""
        self._heard_at: dict[str, float] = {}
        """For each follower, the send time of the last heartbeat that it answered in this term."""
        self._quorum_heard_at = -math.inf
        """The time of the last evidence of a quorum, the leader included; none is long ago."""
        self._elected_at = now

    def deadline(self) -> float:
        """Return the time when `tick` has something to do, unless another event comes first."""
        match self._state.role:
            case Role.LEADER:
                return min(self._beat_at, self._gives_up_at())
            case Role.FOLLOWER:
                at = self._leader_heard_at + self._config.give_up_ms
                return min(at, self._takeover.until) if self._takeover else at
            case _:
                return self._round.ends_at if self._round else self._stand_at

    def tick(self, now: float) -> None:
        match self._state.role:
            case Role.LEADER:
                if now >= self._gives_up_at():
                    self._candidate(self._state.term + 1, Reason.NO_QUORUM, now)
                elif now >= self._beat_at:
                    self._beat(now)
            case Role.FOLLOWER:
                self._tick_follower(now)
            case _:
                if self._round:
                    if now >= self._round.ends_at:
                        self._end_round(now)
                elif now >= self._stand_at:
                    self._stand(now)

    def leads(self, now: float) -> bool:
        """Return whether the member leads and a quorum confirmed that recently.

        A leader that cannot reach a majority must not answer clients. Votes confirm nothing: until a voter
        has answered a heartbeat, it does not wait for this leader, and can elect another one at once.
        """
        is_confirmed = now < self._quorum_heard_at + self._config.give_up_ms
        return self._state.role is Role.LEADER and is_confirmed

    def hand_over(self, now: float) -> None:
        """Step down after a transfer without an answer: another member may lead a later term already."""
        self._candidate(self._state.term + 1, Reason.TRANSFER, now)

    def is_heard(self, member: str, now: float) -> bool:
        """Return whether a follower answered one of the last heartbeats."""
        return self._heard_at.get(member, -math.inf) > now - 2 * self._config.heartbeat_ms

    # -- candidates

    def _stand(self, now: float) -> None:
        state = self._state
        if state.known > state.term:  # it restarted in a term in which it may have been the leader
            self._candidate(state.known, Reason.SILENCE, now)
        elif not rules.may_vote_for(state.self_id, state.voted_for):
            self._candidate(state.term + 1, Reason.SILENCE, now)
        else:
            self._ask_for_votes(now)

    def _ask_for_votes(self, now: float) -> None:
        state = self._state
        state.cast(state.self_id)
        state.changes.append(Voted(state.self_id, state.term, Vote.ACCEPT))
        self._round = _Round(state.self_id, now + self._chance.uniform(*self._config.round_ms))
        end_term, end_index = state.end
        asker = self._takeover.request.local_id if self._takeover else None
        for peer in self._config.peers:
            self._round.asked[peer] = state.ask(
                VoteRequest, peer, asker, ledger_end_index=end_index, ledger_end_term=end_term
            )
        self._decide(now)

    def voted(self, request: VoteRequest, response: VoteResponse, now: float) -> None:
        """Handle a member's vote. Only votes of the current round count."""
        waiting = self._round
        if waiting is None or waiting.asked.get(response.local_id) is not request:
            return
        if response.term > self._state.term:
            self._candidate(response.term, Reason.ANSWER, now, response.local_id)
            return
        waiting.results[response.local_id] = response.vote_result
        self._decide(now)

    def _decide(self, now: float) -> None:
        waiting = self._round
        assert waiting is not None, "no round to decide"
        if rules.is_decided(waiting.results.values(), len(self._config.members)):
            self._end_round(now)

    def _end_round(self, now: float) -> None:
        assert self._round is not None, "no round to end"
        results = tuple(self._round.results.values())
        self._round = None
        match rules.round_result(results, len(self._config.members)):
            case RoundResult.PASSED:
                self._become_leader(now)
            case RoundResult.REVOTE_IMMEDIATELY:
                self._ask_for_votes(now)
            case RoundResult.WAIT_TO_VOTE_NEXT:
                self._candidate(self._state.term + 1, Reason.ROUND, now)
            case RoundResult.WAIT_TO_REVOTE:
                self._stand_at = now + self._wait() + self._extra_wait(results)

    def _extra_wait(self, results: tuple[Vote, ...]) -> float:
        """Return the extra wait: for a leader that others still follow, or for a member with a better log."""
        if Vote.REJECT_ALREADY_HAS_LEADER in results:
            return self._config.give_up_ms
        return self._config.better_ledger_wait_ms if rules.better_ledgers(results) else 0

    def _candidate(self, term: int, reason: Reason, now: float, peer: str | None = None) -> None:
        self._round = None
        self._state.become_candidate(term, reason, peer)
        self._state.next_term()
        self._stand_at = now + self._wait()
        self._end_takeover()

    def _wait(self) -> float:
        return self._chance.uniform(*self._config.vote_wait_ms)

    # -- voters

    def handle_vote(self, request: VoteRequest, now: float) -> None:
        state = self._state
        result = rules.vote_result(
            request.local_id,
            request.term,
            (request.ledger_end_term, request.ledger_end_index),
            state.end,
            (state.term, state.voted_for, state.leader),
        )
        if result is Vote.REJECT_TERM_NOT_READY and self._waits_for_another(request, now):
            return
        if result is Vote.ACCEPT and self._is_taking_over(request):
            result = Vote.REJECT_TAKING_LEADERSHIP
        if result is Vote.ACCEPT:
            state.cast(request.local_id)
            self._stand_at = max(self._stand_at, now + self._chance.uniform(*self._config.round_ms))
        if result is not Vote.REJECT_TAKING_LEADERSHIP:
            state.changes.append(Voted(request.local_id, request.term, result))
        # The response has the term in which the vote was given. A later term is entered after it.
        state.answer(request, VoteResponse, vote_result=result)
        if result is Vote.REJECT_TERM_NOT_READY:
            self._candidate(request.term, Reason.VOTE, now, request.local_id)

    def _waits_for_another(self, request: VoteRequest, now: float) -> bool:
        """Return whether this follower hears a leader that may still answer clients.

        It then leaves requests of later terms unanswered. Its leader answers no client if it asks for votes
        itself, or has asked the candidate to take over: the request names the leader that did.
        """
        is_heard = now < self._leader_heard_at + self._config.give_up_ms
        is_over = self._state.leader in (request.local_id, request.leader_id)
        return self._state.role is Role.FOLLOWER and is_heard and not is_over

    def _is_taking_over(self, request: VoteRequest) -> bool:
        """Return whether this member takes over in the term of the request, with an equally good log.

        It then votes for itself, unless it has already voted.
        """
        mine = self._takeover is not None and self._takeover.term == request.term
        as_good = self._state.end == (request.ledger_end_term, request.ledger_end_index)
        return mine and as_good and self._state.voted_for is None

    # -- leaders

    def _become_leader(self, now: float) -> None:
        self._state.become_leader()
        self._heard_at = {}
        self._quorum_heard_at = self._last_quorum_at()
        self._elected_at = now
        self._end_takeover(led=True)
        self._beat(now)

    def _beat(self, now: float) -> None:
        for peer in self._config.peers:
            self._beat_to(peer, now)
        self._beat_at = now + self._config.heartbeat_ms

    def _beat_to(self, peer: str, now: float) -> None:
        self._sent[peer] = (self._state.ask(HeartBeatRequest, peer), now)

    def heart_beat_answered(self, request: HeartBeatRequest, response: HeartBeatResponse, now: float) -> None:
        state = self._state
        if request.term != state.term:  # a leader that steps down enters a new term
            return
        peer = response.local_id
        match response.code:
            case ResponseCode.SUCCESS:
                # Counted from the send time: the state since then is not known.
                sent, sent_at = self._sent.get(peer, (None, now))
                if sent is request:
                    self._heard_at[peer] = sent_at
                    self._quorum_heard_at = self._last_quorum_at()
            case ResponseCode.EXPIRED_TERM if response.term > state.term:
                self._candidate(response.term, Reason.ANSWER, now, peer)
            case ResponseCode.TERM_NOT_READY:
                self._beat_to(peer, now)  # it has entered this term by now
            case ResponseCode.INCONSISTENT_LEADER:
                self._candidate(state.term + 1, Reason.TWO_LEADERS, now, peer)
            case _:
                pass

    def _last_quorum_at(self) -> float:
        """Return the last time when enough followers were heard for a quorum, with the leader."""
        if self._config.quorum == 1:
            return math.inf
        heard = sorted((self._heard_at.get(peer, -math.inf) for peer in self._config.peers), reverse=True)
        return heard[self._config.quorum - 2]

    def _gives_up_at(self) -> float:
        """Return the time when the leader steps down, unless a quorum answers; a new one waits as long."""
        return max(self._quorum_heard_at, self._elected_at) + self._config.give_up_ms

    # -- followers

    def handle_heart_beat(self, request: HeartBeatRequest, now: float) -> None:
        state = self._state
        leader = request.local_id
        if request.term < state.term:
            code = ResponseCode.EXPIRED_TERM
        elif request.term > state.term:
            code = ResponseCode.TERM_NOT_READY
        elif state.leader in (None, leader):
            code = ResponseCode.SUCCESS
            self._leader_heard_at = now
            if state.leader is None:
                self._round = None
                state.become_follower(leader)
                self._end_takeover()
        else:
            code = ResponseCode.INCONSISTENT_LEADER
        state.answer(request, HeartBeatResponse, code=code)
        if code is ResponseCode.TERM_NOT_READY:
            self._candidate(request.term, Reason.HEART_BEAT, now, leader)

    def _tick_follower(self, now: float) -> None:
        takeover = self._takeover
        if now >= self._leader_heard_at + self._config.give_up_ms:
            self._candidate(self._state.term + 1, Reason.SILENCE, now)
        elif takeover and now >= takeover.until:
            self._end_takeover()

    # -- leadership transfer

    def handle_take_leadership(self, request: TransferRequest, now: float) -> None:
        """Handle the leader's request to take over, once this follower has all of the leader's entries."""
        state = self._state
        if request.term != state.term or request.local_id != state.leader:
            state.answer(request, TransferResponse, code=ResponseCode.INCONSISTENT_LEADER)
            return
        self._end_takeover()
        self._takeover = _Takeover(request, now + self._config.catch_up_ms)
        self.caught_up(now)

    def caught_up(self, now: float) -> None:
        """Start the takeover if the ledger has grown far enough."""
        takeover, state = self._takeover, self._state
        if takeover is None or takeover.term is not None:
            return
        if state.terms.end >= takeover.request.take_leadership_ledger_index:
            takeover.term = state.term + 1
            self._takeover = None  # entering the new term ends any earlier takeover
            self._candidate(takeover.term, Reason.TRANSFER, now)
            self._takeover = takeover
            self._stand_at = now + self._chance.uniform(*self._config.take_leadership_wait_ms)

    def _end_takeover(self, *, led: bool = False) -> None:
        takeover, self._takeover = self._takeover, None
        if takeover is not None:
            code = ResponseCode.SUCCESS if led else ResponseCode.TAKE_LEADERSHIP_FAILED
            self._state.answer(takeover.request, TransferResponse, code=code)
